import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { networkFault } from '../../daemon/github/request-fault.ts'
import { faultOf, ISSUE, REPOSITORY, rigOpener, TEST_TOKEN } from '../support/github-rig.ts'
import { openScriptedServer, replyJson, type Script } from '../support/scripted-server.ts'

const rig = rigOpener()

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

describe('a connection that fails', () => {
  test('a refused connection certainly had no effect', async () => {
    const closed = await openScriptedServer(() => undefined)
    await closed.close()
    const { open } = await rig(() => undefined)
    const github = open({ apiBase: closed.url })
    expect(await faultOf(github.createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/unreachable',
      details: { effect: 'none', code: 'ECONNREFUSED', reason: 'the connection was refused' },
    })
    expect((await faultOf(github.viewer())).details).not.toHaveProperty('effect')
  })

  test('after a cut connection nobody knows', async () => {
    const { open, server } = await rig((_, response) => response.destroy())
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/unreachable',
      details: { effect: 'unknown' },
    })
    expect(server.seen).toHaveLength(1)
  })

  test('a server that does not speak HTTP is a fault with an unknown effect', async () => {
    const { open } = await rig((_, response) => response.socket?.end('SSH-2.0-nonsense\r\n\r\n'))
    expect(await faultOf(open().closeIssue(ISSUE))).toMatchObject({
      code: 'github/unreachable',
      details: { effect: 'unknown' },
    })
  })
})

describe('what an error of fetch says about a write', () => {
  const request = {
    method: 'POST',
    url: 'https://h/x?q=1',
    headers: {},
    body: null,
    subject: 's',
  } as const
  const withCode = (code: string): object => Object.assign(new Error('e'), { code })
  const thrown = (cause: unknown): unknown =>
    Object.assign(new TypeError('fetch failed'), { cause })
  const several = (...codes: string[]): object =>
    Object.assign(new AggregateError(codes.map(withCode)), { code: codes[0] })

  test.each([
    ['a refused connection', thrown(withCode('ECONNREFUSED')), 'none'],
    ['an unknown host', thrown(withCode('ENOTFOUND')), 'none'],
    ['a failed look-up', thrown(withCode('EAI_AGAIN')), 'none'],
    ['every address refused', thrown(several('ECONNREFUSED', 'ECONNREFUSED')), 'none'],
    ['one address refused, one timed out', thrown(several('ECONNREFUSED', 'ETIMEDOUT')), 'unknown'],
    ['a reset', thrown(withCode('ECONNRESET')), 'unknown'],
    ['a closed socket', thrown(withCode('UND_ERR_SOCKET')), 'unknown'],
    ['a code nobody knows', thrown(withCode('toString')), 'unknown'],
    ['no code at all', new TypeError('fetch failed'), 'unknown'],
    ['something that is no error', undefined, 'unknown'],
  ])('%s', (_, error, effect) => {
    const fault = networkFault(request, error)
    expect(fault).toMatchObject({
      code: 'github/unreachable',
      details: { request: 'POST /x', effect },
    })
    expect(fault.cause).toBeUndefined()
  })
})

describe('the token', () => {
  const echo = { message: `bad ${TEST_TOKEN}`, errors: [{ message: `Bearer ${TEST_TOKEN}` }] }
  const everyWay: ReadonlyArray<readonly [string, Script]> = [
    ...[400, 401, 403, 404, 422, 429, 500].map((status): [string, Script] => [
      `a ${status} that repeats it`,
      (_, response) => replyJson(response, status, echo),
    ]),
    ['a success that repeats it', (_, response) => replyJson(response, 200, echo)],
    [
      'a redirect that repeats it',
      (_, response) => replyJson(response, 302, {}, { location: `http://${TEST_TOKEN}@x/` }),
    ],
    ['a cut connection', (_, response) => response.destroy()],
    ['a malformed answer', (_, response) => response.socket?.end(`${TEST_TOKEN}\r\n\r\n`)],
    ['no answer', () => undefined],
  ]
  test.each(everyWay)('occurs nowhere in the fault of %s', async (_, script) => {
    const { open } = await rig(script)
    const github = open({ timeoutMs: 150 })
    for (const call of [github.viewer(), github.createComment(ISSUE, 'x')]) {
      const fault = await faultOf(call)
      const shown = inspect(fault, { depth: 12, showHidden: true }) + JSON.stringify(fault)
      expect(shown + fault.next + String(fault.stack)).not.toContain(TEST_TOKEN)
    }
  })
})
