import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { nextLink } from '../../daemon/github/read-pages.ts'
import {
  commentJson,
  faultOf,
  ISSUE,
  issueJson,
  REPOSITORY,
  rigOpener,
  TEST_TOKEN,
} from '../support/github-rig.ts'
import { openScriptedServer, replyJson, type Script } from '../support/scripted-server.ts'

const rig = rigOpener()

const pageOf = (url: string): number =>
  Number(new URL(url, 'http://x').searchParams.get('page') ?? 1)

describe('which link is the next page', () => {
  test.each([
    [null, null],
    ['', null],
    ['<https://a/2>; rel="next", <https://a/9>; rel="last"', 'https://a/2'],
    ['<https://a/1>; rel="prev", <https://a/3>; rel="next"', 'https://a/3'],
    ['<https://a/9>; rel="last"', null],
    ['<https://a/2>; rel=next', 'https://a/2'],
    ['<https://a/2>; title="x; rel=\\"next"; rel="last"', null],
    ['<https://a/2>;rel="last next"', 'https://a/2'],
    ['<https://a/2>; REL="NEXT"', 'https://a/2'],
    ['<https://a/?x=1,2;y>; rel="next"', 'https://a/?x=1,2;y'],
    ['https://a/2; rel="next"', null],
    ['<https://a/2>; rel="nextish"', null],
  ])('%j → %j', (header, next) => {
    expect(nextLink(header)).toBe(next)
  })

  test('a header of nonsense costs no time', () => {
    expect(nextLink(`<${'; a='.repeat(20_000)}`)).toBeNull()
    expect(nextLink(`<a>${' ;'.repeat(20_000)}`)).toBeNull()
  })
})

describe('a list over several pages', () => {
  const pages = (last: number, change: (page: number) => object = () => ({})): Script => {
    return (request, response) => {
      const page = pageOf(request.url)
      const next = `http://${request.headers.host}/repositories/1/issues?page=${page + 1}`
      const link = `<${next}>; rel="next", <http://elsewhere/>; rel="last"`
      replyJson(response, 200, [commentJson(page, change(page))], page < last ? { link } : {})
    }
  }

  test('is read to its end, in order', async () => {
    const { open, server } = await rig(pages(5))
    const { value } = await open().comments(ISSUE)
    expect(value.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5])
    expect(server.seen).toHaveLength(5)
    expect(server.seen[0]?.url).toBe('/repos/octo/hello/issues/7/comments?per_page=100')
  })

  test('longer than allowed is a fault, not a part', async () => {
    const { open } = await rig(pages(6))
    expect(await faultOf(open().comments(ISSUE))).toMatchObject({
      code: 'github/too-many-pages',
      details: { pages: 5 },
    })
  })

  test.each([
    [429, 'github/rate-limited'],
    [500, 'github/failed'],
    [404, 'github/not-found'],
  ])('of which a later page is answered %s is that fault', async (status, code) => {
    const { open } = await rig((request, response, count) =>
      pageOf(request.url) === 2
        ? replyJson(response, status, {})
        : pages(3)(request, response, count),
    )
    expect((await faultOf(open().comments(ISSUE))).code).toBe(code)
  })

  test.each([
    'http://127.0.0.1:1/repositories/1/issues?page=2',
    'https://api.example.org/x',
    '/relative',
    'not a url',
  ])('does not go on at %s', async (next) => {
    const { open, server } = await rig((_, response) =>
      replyJson(response, 200, [commentJson(1)], { link: `<${next}>; rel="next"` }),
    )
    const fault = await faultOf(open().comments(ISSUE))
    expect(fault.code).toBe('github/bad-answer')
    expect(fault.message).toContain('outside the API')
    expect(server.seen).toHaveLength(1)
  })

  test('does not leave the path of the API base', async () => {
    const { open, server } = await rig(pages(2))
    const fault = await faultOf(open({ apiBase: `${server.url}/api/v3` }).comments(ISSUE))
    expect(fault.message).toContain('outside the API')
  })

  test('that is no list is a bad answer', async () => {
    const { open } = await rig((_, response) => replyJson(response, 200, { items: [] }))
    expect((await faultOf(open().comments(ISSUE))).code).toBe('github/bad-answer')
  })

  test('counts what moved to the next page while it was read once', async () => {
    const { open } = await rig(pages(2, () => ({ id: 8, body: 'same' })))
    expect((await open().comments(ISSUE)).value).toHaveLength(1)
  })

  test('bears the time of its first page', async () => {
    const { open } = await rig((request, response, count) => {
      response.sendDate = false
      response.setHeader('date', `Fri, 02 Jan 2026 03:04:0${count} GMT`)
      pages(2)(request, response, count)
    })
    expect((await open().comments(ISSUE)).serverTime).toBe(Date.parse('2026-01-02T03:04:01Z'))
  })
})

describe('a poll of issues', () => {
  test('skips and tells what is no issue', async () => {
    const { open } = await rig((_, response) =>
      replyJson(response, 200, [
        issueJson(1),
        issueJson(0),
        issueJson(1.5),
        issueJson(-3),
        { number: '4' },
        null,
        'x',
        issueJson(5, { updated_at: 'never' }),
        issueJson(6, { labels: [{ name: 'other' }] }),
      ]),
    )
    const poll = await open().pollLabel(REPOSITORY, 'bot')
    expect(poll.issues.map(({ number }) => number)).toEqual([1])
    expect(poll.malformed).toEqual([
      ...[2, 3, 4, 5, 6, 7].map((n) => `entry ${n} of the list has no usable number`),
      '#5 has no usable time of change',
      '#6 is listed without the label',
    ])
  })

  test('keeps the newest state of an issue that was listed twice', async () => {
    const { open } = await rig((_, response) =>
      replyJson(response, 200, [
        issueJson(1, { title: 'new', updated_at: '2026-01-02T03:04:06Z' }),
        issueJson(1, { title: 'old' }),
      ]),
    )
    const { issues } = await open().pollChanges(REPOSITORY, 0)
    expect(issues.map(({ title }) => title)).toEqual(['new'])
  })

  test.each([
    ['🤖 auto-fix', 'labels=%F0%9F%A4%96%20auto-fix'],
    ['a/b%c&d=e#f+g', 'labels=a%2Fb%25c%26d%3De%23f%2Bg'],
  ])('asks for the label %s encoded', async (label, query) => {
    const { open, server } = await rig((_, response) => replyJson(response, 200, []))
    await open().pollLabel(REPOSITORY, label)
    expect(server.seen[0]?.url).toBe(
      `/repos/octo/hello/issues?state=open&${query}&per_page=${LIMITS.pageSize}&sort=updated&direction=desc`,
    )
  })

  test('looks through all open issues for a label with a comma, which GitHub takes for two', async () => {
    const { open, server } = await rig((_, response) =>
      replyJson(response, 200, [
        issueJson(1, { labels: [{ name: 'a' }, { name: 'b' }] }),
        issueJson(2, { labels: ['A,B'] }),
      ]),
    )
    const poll = await open().pollLabel(REPOSITORY, 'a,b')
    expect(poll.issues.map(({ number }) => number)).toEqual([2])
    expect(poll.malformed).toEqual([])
    expect(server.seen[0]?.url).not.toContain('labels')
  })

  test('finds the label whatever variation selectors GitHub put into it', async () => {
    const { open } = await rig((_, response) =>
      replyJson(response, 200, [issueJson(1, { labels: [{ name: '🤖\uFE0F Auto-Fix' }] })]),
    )
    expect((await open().pollLabel(REPOSITORY, '🤖 auto-fix')).issues).toHaveLength(1)
  })

  test('of changes asks from a whole second on, oldest change first', async () => {
    const { open, server } = await rig((_, response) => replyJson(response, 200, []))
    await open().pollChanges(REPOSITORY, Date.parse('2026-01-02T03:04:05.999Z'))
    expect(server.seen[0]?.url).toBe(
      '/repos/octo/hello/issues?state=all&since=2026-01-02T03%3A04%3A05Z&sort=updated&direction=asc&per_page=100',
    )
  })
})

describe('redirects', () => {
  const viewer = { id: 9, login: 'bot' }

  const moved = issueJson(7, { repository_url: 'https://api.example.org/repos/Octo/renamed' })

  test.each([301, 302, 307, 308])('a read follows a %s and tells where it led', async (status) => {
    const { open, server } = await rig((request, response) => {
      if (request.url.startsWith('/repositories/')) return replyJson(response, 200, moved)
      return replyJson(response, status, {}, { location: '/repositories/1/issues/7' })
    })
    const issue = await open().issue(ISSUE)
    expect(issue?.movedTo).toEqual({ owner: 'Octo', name: 'renamed' })
    expect(server.seen[1]?.headers.authorization).toBe(`Bearer ${TEST_TOKEN}`)
  })

  test('an answer from the same repository in other letters has not moved', async () => {
    const here = issueJson(7, { repository_url: 'https://api.example.org/repos/OCTO/Hello' })
    const { open } = await rig((_, response) => replyJson(response, 200, here))
    expect((await open().issue(ISSUE))?.movedTo).toBeNull()
  })

  test('another origin is not followed and never sees a request', async () => {
    const other = await openScriptedServer((_, response) => replyJson(response, 200, viewer))
    try {
      const { open } = await rig((_, response) =>
        replyJson(response, 302, {}, { location: `${other.url}/user` }),
      )
      const fault = await faultOf(open().viewer())
      expect(fault.code).toBe('github/bad-answer')
      expect(fault.message).toContain('another host')
      expect(other.seen).toEqual([])
    } finally {
      await other.close()
    }
  })

  test('three are followed, a circle is not', async () => {
    const { open, server } = await rig((_, response, count) =>
      count === 4
        ? replyJson(response, 200, viewer)
        : replyJson(response, 302, {}, { location: '/x' }),
    )
    expect(await open().viewer()).toEqual(viewer)
    server.seen.length = 4
    expect((await faultOf(open().viewer())).message).toContain('more than 3 redirects')
    expect(server.seen).toHaveLength(8)
  })

  test.each([undefined, 'http://['])('a location of %s leads nowhere', async (location) => {
    const { open } = await rig((_, response) =>
      replyJson(response, 302, {}, location === undefined ? {} : { location }),
    )
    expect((await faultOf(open().viewer())).message).toContain('a redirect to nowhere')
  })

  test.each([301, 307, 308])('a write is not redirected by a %s', async (status) => {
    const { open, server } = await rig((_, response) =>
      replyJson(response, status, {}, { location: '/elsewhere' }),
    )
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/failed',
      details: { effect: 'none', status },
    })
    expect(server.seen).toHaveLength(1)
  })
})
