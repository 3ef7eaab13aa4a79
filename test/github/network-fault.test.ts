import { inspect } from 'node:util'
import { afterEach, describe, expect, test } from '@jest/globals'
import { networkFault } from '../../daemon/github/network-fault.ts'
import { faultOf, type GitHubRig, ISSUE, openGitHubRig, TEST_TOKEN } from '../support/github-rig.ts'
import { openScriptedServer, replyJson, type Script } from '../support/scripted-server.ts'

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
