import { describe, expect, test } from '@jest/globals'
import { classifyEnd, type EndFacts } from '../../daemon/core/classify-end.ts'
import { fault } from '../../daemon/core/fault.ts'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import { END_REASONS, type EndReason, type ExitReport } from '../../daemon/core/supervisor-files.ts'

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

describe('what an end means', () => {
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
