import { describe, expect, test } from '@jest/globals'
import {
  CANCEL_REQUEST,
  claimsSuccess,
  type ExitReport,
  formatRunFile,
  isCancelRequest,
  type Launch,
  parseEnvironment,
  parseRunFile,
  type Started,
} from '../../daemon/core/supervision-files.ts'

const LAUNCH: Launch = {
  runId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  argv: ['/bin/true', '--', 'ü'],
  treePath: '/tree',
  resultPath: '/tree/worker-result.json',
  transcriptPath: '/runs/x.log',
  transcriptMaxBytes: 0,
  timeoutMs: 1,
  completionGraceMs: 0,
  stallMs: 0,
  launchedAt: '2026-01-01T00:00:00.000Z',
}

const STARTED: Started = {
  supervisor: { pid: 1, startTicks: 2, bootId: 'b', session: 1 },
  worker: null,
  startedAt: '2026-01-01T00:00:00.000Z',
  deadlineAt: '2026-01-01T01:00:00.000Z',
}

const EXIT: ExitReport = {
  endedAt: '2026-01-01T00:00:00.000Z',
  reason: 'exited',
  detail: null,
  exitCode: 0,
  signal: null,
  transcriptBytes: 5,
  transcriptTruncated: false,
  descendantsKilled: 0,
  unkillable: [3],
}

/** The fields of a JSON object this test wrote itself. */
const fieldsOf = (text: string): Record<string, unknown> =>
  JSON.parse(text) as Record<string, unknown>

describe('what the files of a run can say', () => {
  test('each comes back as it was written', () => {
    expect(parseRunFile('launch', formatRunFile('launch', LAUNCH))).toMatchObject(LAUNCH)
    expect(parseRunFile('started', formatRunFile('started', STARTED))).toMatchObject(STARTED)
    expect(parseRunFile('exit', formatRunFile('exit', EXIT))).toMatchObject(EXIT)
  })

  test('no field may be missing or of another kind', () => {
    const whole = fieldsOf(formatRunFile('launch', LAUNCH))
    for (const name of Object.keys(whole)) {
      const { [name]: _, ...rest } = whole
      expect([name, parseRunFile('launch', JSON.stringify(rest))]).toEqual([name, null])
      const odd = JSON.stringify({ ...whole, [name]: { odd: true } })
      expect([name, parseRunFile('launch', odd)]).toEqual([name, null])
    }
  })

  test.each([
    ['another version', { version: 2 }],
    ['another file', { format: 'caduceus-exit' }],
    ['an empty command', { argv: [] }],
    ['a command that is no list of texts', { argv: ['/bin/true', 1] }],
    ['a relative path', { treePath: 'tree' }],
    ['a negative number', { timeoutMs: -1 }],
    ['a fraction', { timeoutMs: 1.5 }],
    ['no time', { launchedAt: 'yesterday' }],
  ])('%s is refused', (_, change) => {
    const whole = fieldsOf(formatRunFile('launch', LAUNCH))
    expect(parseRunFile('launch', JSON.stringify({ ...whole, ...change }))).toBeNull()
  })

  test('an unknown reason and half a process are refused', () => {
    const exit = fieldsOf(formatRunFile('exit', EXIT))
    expect(parseRunFile('exit', JSON.stringify({ ...exit, reason: 'toString' }))).toBeNull()
    const started = fieldsOf(formatRunFile('started', STARTED))
    expect(parseRunFile('started', JSON.stringify({ ...started, worker: { pid: 1 } }))).toBeNull()
    expect(parseRunFile('started', '')).toBeNull()
    expect(parseRunFile('started', 'null')).toBeNull()
  })

  test('only a cancel is a cancel', () => {
    expect(isCancelRequest(CANCEL_REQUEST)).toBe(true)
    expect(['', '{}', '[]', '"cancel"', '{"action":"canc'].some(isCancelRequest)).toBe(false)
  })

  test('an environment is an object of texts', () => {
    expect(parseEnvironment('{"A":"1","__proto__x":""}')).toEqual({ A: '1', __proto__x: '' })
    for (const text of ['', '[]', '{"A":1}', '{"A":null}', '{"A":"1"']) {
      expect(parseEnvironment(text)).toBeNull()
    }
  })

  test('only "success" claims success', () => {
    expect(claimsSuccess('{"status":"success"}')).toBe(true)
    expect(['{"status":"Success"}', '{}', '[]', 'success', ''].some(claimsSuccess)).toBe(false)
  })
})
