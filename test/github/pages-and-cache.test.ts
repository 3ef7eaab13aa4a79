import {
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { openEtagCache } from '../../daemon/github/etag-cache.ts'
import type { HttpRequest } from '../../daemon/github/http-request.ts'
import { nextLink } from '../../daemon/github/read-pages.ts'
import {
  commentJson,
  faultOf,
  ISSUE,
  issueJson,
  openScriptedServer,
  pullJson,
  REPOSITORY,
  replyJson,
  rigOpener,
  type Script,
  type SeenRequest,
  TEST_TOKEN,
} from '../support/github-rig.ts'

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
    expect(issue?.movedTo).toEqual({ owner: 'Octo', name: 'renamed', number: 7 })
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
      code: 'github/moved',
      effect: 'none',
      details: { status },
    })
    expect(server.seen).toHaveLength(1)
  })
})

/** GitHub's way: 304 for the current validator, else the list with it. */
const validating =
  (etag: string, body: readonly object[] = [issueJson(1)]): Script =>
  (request, response) => {
    if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end()
    else replyJson(response, 200, body, { etag })
  }
const validators = (seen: readonly SeenRequest[]): readonly (string | undefined)[] =>
  seen.map(({ headers }) => headers['if-none-match'])

describe('a poll that was made before', () => {
  test.each(['"abc"', 'W/"abc"', '""'])('is a 304 with %s, for a new process too', async (etag) => {
    const { open, server } = await rig(validating(etag))
    const first = await open().pollLabel(REPOSITORY, 'bot')
    const second = await open().pollLabel(REPOSITORY, 'bot')
    expect(first.unchanged).toBe(false)
    expect(second).toMatchObject({ unchanged: true, issues: first.issues })
    expect(validators(server.seen)).toEqual([undefined, etag])
  })

  test.each(['abc', 'w/"abc"', '"a"b"', `"${'x'.repeat(300)}"`])(
    'keeps no malformed validator: %s',
    async (etag) => {
      const { open, server, cacheDirectory } = await rig(validating(etag))
      const github = open()
      await github.pollLabel(REPOSITORY, 'bot')
      expect((await github.pollLabel(REPOSITORY, 'bot')).unchanged).toBe(false)
      expect(validators(server.seen)).toEqual([undefined, undefined])
      expect(readdirSync(cacheDirectory)).toEqual([])
    },
  )

  const damages: ReadonlyArray<readonly [string, (path: string) => void]> = [
    ['is gone', (path) => rmSync(path)],
    ['is empty', (path) => writeFileSync(path, '')],
    ['is cut off', (path) => writeFileSync(path, readFileSync(path).subarray(0, -3))],
    [
      'has lost its body',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').split('\n')[0] ?? ''),
    ],
    ['is garbage', (path) => writeFileSync(path, Buffer.from([0xff, 0xfe, 0, 10, 5]))],
    [
      'has another body',
      (path) => writeFileSync(path, `${readFileSync(path, 'utf8').split('\n')[0]}\n[]`),
    ],
    [
      'has another version',
      (path) =>
        writeFileSync(path, readFileSync(path, 'utf8').replace('"version":1', '"version":2')),
    ],
    ['is huge', (path) => writeFileSync(path, Buffer.alloc(LIMITS.httpCacheFileBytes + 1))],
    [
      'is a link',
      (path) => {
        rmSync(path)
        symlinkSync('/dev/zero', path)
      },
    ],
  ]
  test.each(damages)('is made anew when the kept file %s', async (_, damage) => {
    const { open, server, cacheDirectory } = await rig(validating('"1"'))
    const first = await open().pollLabel(REPOSITORY, 'bot')
    for (const name of readdirSync(cacheDirectory)) damage(join(cacheDirectory, name))
    const second = await open().pollLabel(REPOSITORY, 'bot')
    expect(second).toMatchObject({ unchanged: false, issues: first.issues })
    expect(validators(server.seen)).toEqual([undefined, undefined])
  })

  test('a 304 to a question without a validator is asked again once, then is a fault', async () => {
    const { open, server } = await rig((_, response, count) =>
      count === 2 ? replyJson(response, 200, [issueJson(1)]) : response.writeHead(304).end(),
    )
    expect((await open().pollLabel(REPOSITORY, 'bot')).issues).toHaveLength(1)
    expect(server.seen).toHaveLength(2)
    expect((await faultOf(open().pollLabel(REPOSITORY, 'bot'))).code).toBe('github/failed')
    expect(server.seen).toHaveLength(4)
  })

  test('goes on with its next page after a 304', async () => {
    const { open, server } = await rig((request, response, count) => {
      const isSecond = request.url.includes('page=2')
      if (!isSecond) {
        response.setHeader('link', `<http://${request.headers.host}/x?page=2>; rel="next"`)
        if (request.headers['if-none-match'] !== undefined) response.removeHeader('link')
      }
      validating(isSecond ? '"b"' : '"a"', [issueJson(isSecond ? 2 : 1)])(request, response, count)
    })
    const first = await open().pollChanges(REPOSITORY, 0)
    const second = await open().pollChanges(REPOSITORY, 0)
    expect(first.issues.map(({ number }) => number)).toEqual([1, 2])
    expect(second).toMatchObject({ unchanged: true, issues: first.issues })
    expect(server.seen).toHaveLength(4)
  })

  test('is not "unchanged" when only one of its pages is', async () => {
    const { open } = await rig((request, response, count) => {
      const isSecond = request.url.includes('page=2')
      if (!isSecond) {
        response.setHeader('link', `<http://${request.headers.host}/x?page=2>; rel="next"`)
      }
      validating(isSecond ? `"${count}"` : '"a"', [issueJson(isSecond ? 2 : 1)])(
        request,
        response,
        count,
      )
    })
    await open().pollChanges(REPOSITORY, 0)
    expect((await open().pollChanges(REPOSITORY, 0)).unchanged).toBe(false)
  })

  test('asks in full for a full last page: GitHub says 304 for it even when a page was added', async () => {
    const full = Array.from({ length: LIMITS.pageSize }, (_, index) => issueJson(index + 1))
    const { open, server } = await rig(validating('"1"', full))
    await open().pollChanges(REPOSITORY, 0)
    await open().pollChanges(REPOSITORY, 0)
    expect(validators(server.seen)).toEqual([undefined, undefined])
  })

  test('asks in full from another time on, and keeps one file for all times', async () => {
    const { open, server, cacheDirectory } = await rig(validating('"1"'))
    const github = open()
    await github.pollChanges(REPOSITORY, 0)
    await github.pollChanges(REPOSITORY, 5_000)
    await github.pollChanges(REPOSITORY, 5_000)
    expect(validators(server.seen)).toEqual([undefined, undefined, '"1"'])
    expect(readdirSync(cacheDirectory)).toHaveLength(1)
  })

  test('keeps its files to itself and the token out of them', async () => {
    const { open, cacheDirectory } = await rig(validating('"1"'))
    await open().pollLabel(REPOSITORY, 'bot')
    for (const name of readdirSync(cacheDirectory)) {
      const path = join(cacheDirectory, name)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(readFileSync(path, 'utf8')).not.toContain(TEST_TOKEN)
    }
  })

  test('works without a place to keep anything', async () => {
    const { open, cacheDirectory } = await rig(validating('"1"'))
    writeFileSync(join(cacheDirectory, 'file'), '')
    const github = open({ cacheDirectory: join(cacheDirectory, 'file', 'below') })
    expect((await github.pollLabel(REPOSITORY, 'bot')).issues).toHaveLength(1)
    expect((await github.pollLabel(REPOSITORY, 'bot')).issues).toHaveLength(1)
  })

  test('of a pull request is a 304 as well; an issue and its comments are always read anew', async () => {
    const { open, server } = await rig((request, response) => {
      if (request.headers['if-none-match'] !== undefined) response.writeHead(304).end()
      else if (request.url.includes('/pulls/'))
        replyJson(response, 200, pullJson(3), { etag: '"p"' })
      else if (request.url.includes('/comments')) replyJson(response, 200, [], { etag: '"c"' })
      else replyJson(response, 200, issueJson(7), { etag: '"i"' })
    })
    const github = open()
    for (let round = 0; round < 2; round += 1) {
      expect((await github.pullRequest(REPOSITORY, 3))?.number).toBe(3)
      expect((await github.issue(ISSUE))?.number).toBe(7)
      await github.comments(ISSUE)
    }
    expect(validators(server.seen).filter((each) => each !== undefined)).toEqual(['"p"'])
  })

  test('of a pull request that is gone forgets what was kept', async () => {
    const { open, cacheDirectory } = await rig((_, response, count) =>
      count === 1
        ? replyJson(response, 200, pullJson(3), { etag: '"p"' })
        : replyJson(response, 404, {}),
    )
    const github = open()
    await github.pullRequest(REPOSITORY, 3)
    expect(await github.pullRequest(REPOSITORY, 3)).toBeNull()
    expect(readdirSync(cacheDirectory)).toEqual([])
  })
})

describe('how much is kept', () => {
  const request = (path: string, accept = 'a'): HttpRequest => ({
    method: 'GET',
    url: `http://x/${path}`,
    headers: { accept },
    body: null,
    subject: '',
  })
  const page = (text: string) => ({ etag: '"e"', link: null, text })
  const clock = { now: () => Date.now(), sleep: () => Promise.resolve() }

  test('as many files as allowed, the longest unchanged goes first', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    for (const [index, path] of ['old', 'older', 'new'].entries()) {
      const before = readdirSync(cacheDirectory)
      openEtagCache({ clock }, cacheDirectory, { files: 9, bytes: 1e6 }).store(
        request(path),
        page(path),
      )
      const made = readdirSync(cacheDirectory).find((name) => !before.includes(name)) ?? ''
      const seconds = [2000, 1000, 3000][index] ?? 0
      utimesSync(join(cacheDirectory, made), seconds, seconds)
    }
    const cache = openEtagCache({ clock }, cacheDirectory, { files: 3, bytes: 1e6 })
    cache.store(request('newest'), page('n'))
    expect(
      ['old', 'older', 'new', 'newest'].map((path) => cache.load(request(path)) !== null),
    ).toEqual([true, false, true, true])
  })

  test('as many bytes as allowed', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const big = page('x'.repeat(10_000))
    for (let index = 0; index < 5; index += 1) {
      openEtagCache({ clock }, cacheDirectory, { files: 99, bytes: 25_000 }).store(
        request(`${index}`),
        big,
      )
    }
    expect(readdirSync(cacheDirectory)).toHaveLength(2)
  })

  test('no answer larger than a file may be', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const cache = openEtagCache({ clock }, cacheDirectory)
    cache.store(request('a'), page('small'))
    cache.store(request('a'), page('x'.repeat(LIMITS.httpCacheFileBytes)))
    expect(cache.load(request('a'))).toBeNull()
    expect(readdirSync(cacheDirectory)).toEqual([])
  })

  test('the answer to one Accept is not given for another', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const cache = openEtagCache({ clock }, cacheDirectory)
    cache.store(request('a', 'json'), page('1'))
    cache.store(request('a', 'html'), page('2'))
    expect(cache.load(request('a', 'json'))?.text).toBe('1')
    expect(cache.load(request('a', 'html'))?.text).toBe('2')
    expect(cache.load(request('a', 'text'))).toBeNull()
  })

  test('text of any language comes back as it was', async () => {
    const { cacheDirectory } = await rig(() => undefined)
    const cache = openEtagCache({ clock }, cacheDirectory)
    const text = '[\n"🤖\uFE0F é \u0000 \\n"]\n\n'
    cache.store(request('a'), { etag: 'W/"x"', link: '<u>; rel="next"', text })
    expect(cache.load(request('a'))).toEqual({ etag: 'W/"x"', link: '<u>; rel="next"', text })
  })
})
