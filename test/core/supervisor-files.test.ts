import { describe, expect, test } from '@jest/globals'
import { classifyEnd, type EndFacts } from '../../daemon/core/classify-end.ts'
import { fault } from '../../daemon/core/fault.ts'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import {
  CANCEL_REQUEST,
  claimsSuccess,
  END_REASONS,
  type EndReason,
  type ExitReport,
  formatRunFile,
  isCancelRequest,
  type Launch,
  parseEnvironment,
  parseRunFile,
  type Started,
} from '../../daemon/core/supervisor-files.ts'

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

describe('what an end means', () => {
  const FACTS: EndFacts = {
    runId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    program: '/opt/bridge',
    transcriptPath: '/state/runs/x.log',
    timeoutMs: 3_600_000,
    stallMs: 60_000,
  }

  /** `Object.keys` forgets that these are the table's own keys. */
  const REASONS = Object.keys(END_REASONS) as EndReason[]

  function report(change: Partial<ExitReport>): ExitReport {
    return {
      endedAt: '2026-01-01T00:00:00.000Z',
      reason: 'exited',
      detail: null,
      exitCode: null,
      signal: null,
      transcriptBytes: 0,
      transcriptTruncated: false,
      descendantsKilled: 0,
      unkillable: [],
      ...change,
    }
  }

  const verdictOn = (change: Partial<ExitReport>) =>
    classifyEnd({ kind: 'ended', report: report(change) }, FACTS)

  test.each<[string, Partial<ExitReport>, string]>([
    ['exit 0', { exitCode: 0 }, 'read-result'],
    [
      'a lingering worker with a result',
      { reason: 'completion-grace', signal: 'SIGTERM' },
      'read-result',
    ],
    ['a cancel', { reason: 'cancelled', signal: 'SIGTERM' }, 'cancelled'],
    ['another exit code', { exitCode: 3 }, 'worker/exited'],
    ['a crash', { signal: 'SIGSEGV' }, 'worker/exited'],
    ['a kill from elsewhere', { signal: 'SIGKILL' }, 'worker/interrupted'],
    ['a hang-up', { signal: 'SIGHUP' }, 'worker/interrupted'],
    ['an unknown end', {}, 'unknown-exit worker/interrupted'],
    ['the deadline, whatever the exit', { reason: 'deadline', exitCode: 0 }, 'worker/timed-out'],
    ['a stall', { reason: 'stalled', signal: 'SIGTERM' }, 'worker/stalled'],
    ['a signal to the supervisor', { reason: 'signal', exitCode: 0 }, 'worker/interrupted'],
    ['an absent program', { reason: 'spawn-failed', detail: 'ENOENT' }, 'worker/command-missing'],
    [
      'a closed program',
      { reason: 'spawn-failed', detail: 'EACCES' },
      'worker/command-not-executable',
    ],
    ['another failed start', { reason: 'spawn-failed', detail: 'E2BIG' }, 'sys/spawn-failed'],
    ['a full disk', { reason: 'transcript-failed', detail: 'ENOSPC' }, 'worker/transcript-failed'],
    ['a fault of ours', { reason: 'supervisor-failed', detail: 'x' }, 'worker/supervisor-failed'],
    ['processes left over outrank success', { exitCode: 0, unkillable: [7] }, 'sys/unkillable'],
  ])('%s', (_, change, expected) => {
    const verdict = verdictOn(change)
    const shown = 'code' in verdict ? verdict.code : verdict.kind
    expect(verdict.kind === 'unknown-exit' ? `${verdict.kind} ${shown}` : shown).toBe(expected)
  })

  test('a vanished supervisor: nothing was paid, or nobody knows', () => {
    expect(classifyEnd({ kind: 'vanished', workerStarted: false }, FACTS)).toEqual({
      kind: 'not-started',
    })
    expect(classifyEnd({ kind: 'vanished', workerStarted: true }, FACTS)).toMatchObject({
      kind: 'unknown-exit',
    })
  })

  test('only what the worker did itself costs an attempt', () => {
    const classes = REASONS.map((reason): [EndReason, string] => {
      const verdict = verdictOn({ reason, exitCode: 1 })
      return [reason, 'code' in verdict ? FAULTS[verdict.code].class : verdict.kind]
    })
    expect(classes.filter(([, found]) => found === 'worker').map(([reason]) => reason)).toEqual([
      'exited',
      'deadline',
      'stalled',
    ])
  })

  test('every message can be filled from its details', () => {
    for (const reason of REASONS) {
      const verdict = verdictOn({ reason, exitCode: 1, detail: 'ENOENT' })
      if (!('code' in verdict)) continue
      const { message, next } = fault(verdict.code, verdict.details)
      expect(`${message} ${next}`).not.toMatch(/ \?|\?\.|null|undefined/)
    }
  })
})
