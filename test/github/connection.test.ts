import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import {
  faultOf,
  type GitHubRig,
  ISSUE,
  openGitHubRig,
  REPOSITORY,
  TEST_TOKEN,
} from '../support/github-rig.ts'
import { replyJson, type Script } from '../support/scripted-server.ts'

let rigs: GitHubRig[] = []
const rig = async (script: Script): Promise<GitHubRig> => {
  const opened = await openGitHubRig(script)
  rigs.push(opened)
  return opened
}
afterEach(async () => {
  await Promise.all(rigs.map((each) => each.close()))
  rigs = []
})

const viewer = { id: 9, login: 'bot' }

describe('what a request carries', () => {
  test('the headers GitHub asks for, and the token', async () => {
    const { open, server } = await rig((_, response) => replyJson(response, 200, viewer))
    expect(await open().viewer()).toEqual(viewer)
    expect(server.seen[0]?.headers).toMatchObject({
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
      'user-agent': 'caduceus/1.2.3',
      authorization: `Bearer ${TEST_TOKEN}`,
    })
  })

  test.each(['', '/', '/api/v3', '/api/v3/', '/a/b'])(
    'the path "%s" of the API base stays in front',
    async (path) => {
      const { open, server } = await rig((_, response) => replyJson(response, 200, viewer))
      await open({ apiBase: server.url + path }).viewer()
      expect(server.seen[0]?.url).toBe(`${path.replace(/\/$/, '')}/user`)
    },
  )

  test('an API base with credentials is refused without being shown', async () => {
    const { open } = await rig(() => undefined)
    expect(() => open({ apiBase: 'https://me:hidden-word@example.org/api/v3' })).toThrow(
      expect.objectContaining({
        code: 'config/invalid',
        message: expect.not.stringContaining('hidden'),
      }),
    )
  })

  test('the token is asked for once, and again only after GitHub rejected it', async () => {
    let asked = 0
    const { open } = await rig((_, response, count) =>
      replyJson(response, count === 3 ? 401 : 200, viewer),
    )
    const github = open({
      token: () => {
        asked += 1
        return Promise.resolve(TEST_TOKEN)
      },
    })
    await Promise.all([github.viewer(), github.viewer()])
    expect(asked).toBe(1)
    expect((await faultOf(github.viewer())).code).toBe('token/rejected')
    await github.viewer()
    expect(asked).toBe(2)
  })

  test.each([`${TEST_TOKEN}\n`, `two words`, 'schlüssel', ''])(
    'a token that no header can carry (%j) is a fault before anything is sent',
    async (token) => {
      const { open, server } = await rig(() => undefined)
      const fault = await faultOf(open({ token: async () => token }).closeIssue(ISSUE))
      expect(fault).toMatchObject({ code: 'token/malformed', details: { effect: 'none' } })
      expect(inspect(fault, { depth: 9 })).not.toContain('plain-secret')
      expect(server.seen).toEqual([])
    },
  )
})

describe('how long and how much', () => {
  test('a server that never answers is given up at the deadline', async () => {
    const { open } = await rig(() => undefined)
    const github = open({ timeoutMs: 100 })
    expect(await faultOf(github.viewer())).toMatchObject({
      code: 'github/unreachable',
      details: { reason: 'no answer came in time' },
    })
    expect((await faultOf(github.closeIssue(ISSUE))).details['effect']).toBe('unknown')
  })

  test('a body that stops arriving is given up at the deadline', async () => {
    const { open } = await rig((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"id": 9, ')
    })
    expect(await faultOf(open({ timeoutMs: 150 }).viewer())).toMatchObject({
      code: 'github/bad-answer',
      details: { reason: 'the body did not arrive in time' },
    })
  })

  test('an endless body is refused while it arrives', async () => {
    let sent = 0
    const { open } = await rig((_, response) => {
      const chunk = Buffer.alloc(256 * 1024, 32)
      const pump = (): void => {
        while (!response.destroyed && sent < 100 * LIMITS.httpBodyBytes) {
          sent += chunk.length
          if (!response.write(chunk)) return
        }
      }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.on('drain', pump)
      pump()
    })
    const fault = await faultOf(open().viewer())
    expect(fault).toMatchObject({ code: 'github/bad-answer' })
    expect(fault.message).toContain(`more than ${LIMITS.httpBodyBytes} bytes`)
    expect(sent).toBeLessThan(10 * LIMITS.httpBodyBytes)
  })

  test('a small compressed body that unpacks to a huge one is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(LIMITS.httpBodyBytes + 1, 32))
    const { open } = await rig((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      response.end(bomb)
    })
    expect((await faultOf(open().viewer())).message).toContain('more than')
  })

  test.each([
    ['not JSON', '<html>', 'the body is not JSON'],
    ['empty', '', 'the body is not JSON'],
    ['another type', '[]', 'a user without its basic fields'],
    ['numbers beyond exactness', '{"id": 90071992547409930, "login": "x"}', 'a user without'],
  ])('a success that is %s is a bad answer', async (_, body, reason) => {
    const { open } = await rig((_request, response) => response.end(body))
    const fault = await faultOf(open().viewer())
    expect(fault.code).toBe('github/bad-answer')
    expect(fault.message).toContain(reason)
  })

  test('a list of more entries than a call may have arguments is read without harm', async () => {
    const { open } = await rig((_, response) => response.end(`[${'0,'.repeat(200_000)}0]`))
    expect((await open().timeline(ISSUE)).value).toHaveLength(200_001)
  })
})

describe("GitHub's clock", () => {
  test('is that of the last answer, also of an error', async () => {
    const { open } = await rig((_, response, count) => {
      response.sendDate = false
      replyJson(response, count === 1 ? 200 : 500, viewer, {
        date: `Fri, 02 Jan 2026 03:04:0${count} GMT`,
      })
    })
    const github = open()
    expect(github.serverTime()).toBeNull()
    await github.viewer()
    expect(github.serverTime()).toBe(Date.parse('2026-01-02T03:04:01Z'))
    await faultOf(github.repository(REPOSITORY))
    expect(github.serverTime()).toBe(Date.parse('2026-01-02T03:04:02Z'))
  })
})
