import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { observeRate, recogniseLimit } from '../../daemon/github/rate-limits.ts'
import { networkFault } from '../../daemon/github/request-fault.ts'
import { detailsOf } from '../support/faults.ts'
import {
  faultOf,
  ISSUE,
  openScriptedServer,
  REPOSITORY,
  replyJson,
  rigOpener,
  type Script,
  TEST_TOKEN,
} from '../support/github-rig.ts'

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
      expect(fault).toMatchObject({ code: 'token/malformed', effect: 'none' })
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
    expect(await faultOf(github.closeIssue(ISSUE))).toHaveProperty('effect', 'unknown')
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
      effect: 'none',
      details: { code: 'ECONNREFUSED', reason: 'the connection was refused' },
    })
    expect(await faultOf(github.viewer())).not.toHaveProperty('effect')
  })

  test('after a cut connection nobody knows', async () => {
    const { open, server } = await rig((_, response) => response.destroy())
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/unreachable',
      effect: 'unknown',
    })
    expect(server.seen).toHaveLength(1)
  })

  test('a server that does not speak HTTP is a fault with an unknown effect', async () => {
    const { open } = await rig((_, response) => response.socket?.end('SSH-2.0-nonsense\r\n\r\n'))
    expect(await faultOf(open().closeIssue(ISSUE))).toMatchObject({
      code: 'github/unreachable',
      effect: 'unknown',
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
      effect,
      details: { request: 'POST /x' },
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

const NOW = Date.parse('2026-05-01T12:00:00Z')
// GitHub's clock is two minutes ahead of ours: what it says in its time has to be put into ours.
const SERVER_NOW = NOW + 120_000
const HOUR_MS = 3_600_000
const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes.'
const PRIMARY = 'API rate limit exceeded for user ID 1.'
const reset = (ms: number): string => String(Math.floor((SERVER_NOW + ms) / 1000))
const date = (ms: number): string => new Date(SERVER_NOW + ms).toUTCString()
const spent = { 'x-ratelimit-remaining': '0' }

describe('which answers are limits, and for how long', () => {
  test.each([
    ['403 spent', 403, { ...spent, 'x-ratelimit-reset': reset(600_000) }, PRIMARY, 'primary', 601],
    ['429 spent', 429, { ...spent, 'x-ratelimit-reset': reset(600_000) }, PRIMARY, 'primary', 601],
    ['spent, reset long past', 403, { ...spent, 'x-ratelimit-reset': '1' }, PRIMARY, 'primary', 1],
    [
      'spent, reset malformed',
      403,
      { ...spent, 'x-ratelimit-reset': 'soon' },
      PRIMARY,
      'primary',
      60,
    ],
    [
      'spent, reset absurd',
      403,
      { ...spent, 'x-ratelimit-reset': '99999999999' },
      '',
      'primary',
      LIMITS.rateLimitCapMs / 1000,
    ],
    ['only the text of a primary limit', 403, {}, PRIMARY, 'primary', 60],
    [
      'secondary, quota left, no Retry-After',
      403,
      { 'x-ratelimit-remaining': '4999' },
      SECONDARY,
      'secondary',
      60,
    ],
    ['secondary as 429', 429, {}, SECONDARY, 'secondary', 60],
    ['secondary with Retry-After', 403, { 'retry-after': '17' }, SECONDARY, 'secondary', 17],
    [
      'secondary and spent',
      403,
      { ...spent, 'retry-after': '60', 'x-ratelimit-reset': reset(900_000) },
      SECONDARY,
      'secondary',
      901,
    ],
    [
      'the old name of secondary',
      403,
      {},
      'You have triggered an abuse detection mechanism.',
      'secondary',
      60,
    ],
    ['Retry-After alone', 403, { 'retry-after': '30' }, 'no', 'retry-after', 30],
    ['Retry-After as a date', 429, { 'retry-after': date(45_000) }, 'no', 'retry-after', 45],
    ['Retry-After of nothing', 429, { 'retry-after': '0' }, 'no', 'retry-after', 1],
    [
      'Retry-After for days',
      429,
      { 'retry-after': '999999' },
      'no',
      'retry-after',
      LIMITS.rateLimitCapMs / 1000,
    ],
    ['plain 429', 429, {}, 'no', 'retry-after', 60],
  ])('%s', (_, status, headers, reason, kind, seconds) => {
    const moment = { now: NOW, serverTime: SERVER_NOW }
    expect(recogniseLimit(status, new Headers(headers), reason, moment)).toEqual({
      kind,
      until: toTimestamp(NOW + seconds * 1000),
    })
  })

  test.each([
    [
      'a 403 for want of permission',
      403,
      { 'x-ratelimit-remaining': '17' },
      'Must have admin rights',
    ],
    ['a success that used up the quota', 200, { ...spent, 'x-ratelimit-reset': reset(1) }, ''],
    ['a failure that asks for patience', 503, { 'retry-after': '5' }, SECONDARY],
    ['a 404', 404, spent, ''],
  ])('%s is none', (_, status, headers, reason) => {
    const moment = { now: NOW, serverTime: SERVER_NOW }
    expect(recogniseLimit(status, new Headers(headers), reason, moment)).toBeNull()
  })
})

describe('what the rate headers say', () => {
  const whole = {
    'x-ratelimit-limit': '5000',
    'x-ratelimit-remaining': '4999',
    'x-ratelimit-reset': '1767323045',
  }
  test('all of them make an observation', () => {
    expect(observeRate(new Headers(whole), NOW)).toEqual({
      limit: 5000,
      remaining: 4999,
      resetAt: '2026-01-02T03:04:05.000Z',
      observedAt: toTimestamp(NOW),
    })
  })

  test.each(Object.keys(whole))('without %s there is none', (name) => {
    const headers = new Headers(whole)
    headers.delete(name)
    expect(observeRate(headers, NOW)).toBeNull()
    for (const odd of ['', '-1', '1.5', 'NaN', '1e9', '999999999999', ' ']) {
      headers.set(name, odd)
      expect(observeRate(headers, NOW)).toBeNull()
    }
  })
})

describe('the gate', () => {
  const rig = rigOpener()
  const limited: Script = (_, response) => replyJson(response, 403, { message: SECONDARY })
  const viewer = { id: 9, login: 'bot' }

  test('a limit met by one process holds back every other one, without a request', async () => {
    const { open, server, gate, time } = await rig(limited)
    const [one, other] = [open(), open()]
    const met = await faultOf(one.createComment(ISSUE, 'x'))
    const untilMs = time.now + LIMITS.secondaryLimitMs
    expect(met).toMatchObject({
      code: 'github/rate-limited',
      effect: 'none',
      details: { kind: 'secondary', until: toTimestamp(untilMs), untilMs },
    })
    expect(gate.wait).toEqual({ kind: 'secondary', until: toTimestamp(untilMs) })
    for (const call of [other.viewer(), other.issue(ISSUE), one.pollLabel(REPOSITORY, 'bot')]) {
      expect(await faultOf(call)).toMatchObject({
        code: 'github/rate-limited',
        details: { untilMs },
      })
    }
    expect(await faultOf(other.closeIssue(ISSUE))).toHaveProperty('effect', 'none')
    expect(server.seen).toHaveLength(1)
  })

  test('a 429 to a write leaves open whether it took effect', async () => {
    const { open } = await rig((_, response) => replyJson(response, 429, { message: 'slow down' }))
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toHaveProperty('effect', 'unknown')
  })

  test('it opens by itself when the time has come, and not a moment before', async () => {
    const { open, server, time } = await rig((request, response, count) =>
      count === 1 ? limited(request, response, count) : replyJson(response, 200, viewer),
    )
    const github = open()
    await faultOf(github.viewer())
    time.now += LIMITS.secondaryLimitMs - 1
    await faultOf(github.viewer())
    expect(server.seen).toHaveLength(1)
    time.now += 1
    expect(await github.viewer()).toEqual(viewer)
  })

  test('it holds in this process even when the wait cannot be stored', async () => {
    const { open, server } = await rig(limited)
    const github = open({ onWait: () => Promise.reject(new TypeError('disk full')) })
    expect((await faultOf(github.viewer())).code).toBe('github/rate-limited')
    expect((await faultOf(github.viewer())).code).toBe('github/rate-limited')
    expect(server.seen).toHaveLength(1)
  })

  test('of two limits met at once the longer one counts', async () => {
    const { open, time } = await rig((_, response, count) =>
      replyJson(response, 429, {}, { 'retry-after': count === 1 ? '600' : '5' }),
    )
    const github = open({ onWait: () => undefined })
    await Promise.all([faultOf(github.viewer()), faultOf(github.viewer())])
    expect(detailsOf(await faultOf(github.viewer()))['untilMs']).toBe(time.now + 600_000)
  })

  test('processes that wait for the same limit come back at different moments', async () => {
    const { open, time } = await rig(limited)
    const early = await faultOf(open({ random: () => 0.2 }).viewer())
    const late = await faultOf(open({ random: () => 0.9 }).viewer())
    const base = time.now + LIMITS.secondaryLimitMs
    expect(detailsOf(early)['untilMs']).toBe(base + 1000)
    expect(detailsOf(late)['untilMs']).toBe(base + 4500)
    expect(detailsOf(early)['until']).toBe(detailsOf(late)['until'])
  })

  test('a stored wait from before the clock was set back holds nobody for ever', async () => {
    const { open, gate, time } = await rig((_, response) => replyJson(response, 200, viewer))
    gate.wait = { kind: 'primary', until: toTimestamp(time.now + 24 * HOUR_MS) }
    expect(await open().viewer()).toEqual(viewer)
  })

  test('a page that used up the quota is used, and the quota is reported', async () => {
    const { open, answers, time } = await rig((_, response) =>
      replyJson(response, 200, viewer, {
        'x-ratelimit-limit': '5000',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(Math.floor(time.now / 1000) + 60),
      }),
    )
    expect(await open().viewer()).toEqual(viewer)
    expect(answers).toEqual([
      {
        status: 200,
        rate: expect.objectContaining({
          limit: 5000,
          remaining: 0,
          observedAt: toTimestamp(time.now),
        }),
      },
    ])
  })

  test('fifty repositories polled at once take no longer than the slowest answer needs', async () => {
    const waiting: (() => void)[] = []
    const { open, server } = await rig((_, response) => {
      waiting.push(() => replyJson(response, 200, []))
      // Nobody is answered before all have asked: any queue in the client would stop here for ever.
      if (waiting.length === 50) for (const answer of waiting) answer()
    })
    const github = open()
    const polls = Array.from({ length: 50 }, (_, index) =>
      github.pollLabel({ owner: 'octo', name: `r${index}` }, 'bot'),
    )
    expect(await Promise.all(polls)).toHaveLength(50)
    expect(server.seen).toHaveLength(50)
  })
})
