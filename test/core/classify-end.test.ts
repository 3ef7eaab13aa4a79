import { describe, expect, test } from '@jest/globals'
import { classifyEnd, type EndFacts } from '../../daemon/core/classify-end.ts'
import { END_REASONS, type EndReason } from '../../daemon/core/end-reasons.ts'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import type { ExitReport } from '../../daemon/core/supervision-files.ts'

describe('what an end means', () => {
  const FACTS: EndFacts = {
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
  ])('%s', (_, change, expected) => {
    const verdict = verdictOn(change)
    const shown = 'fault' in verdict ? verdict.fault.code : verdict.kind
    expect(verdict.kind === 'unknown-exit' ? `${verdict.kind} ${shown}` : shown).toBe(expected)
  })

  test('processes left over outrank every end: it is judged once they are gone', () => {
    for (const reason of REASONS) {
      expect(verdictOn({ reason, exitCode: 0, unkillable: [7] })).toMatchObject({
        kind: 'unreaped',
        onceReaped: verdictOn({ reason, exitCode: 0 }),
      })
    }
  })

  test.each([
    ['nothing was paid', true, false, { kind: 'not-started' }],
    ['nobody knows', true, true, { kind: 'unknown-exit', fault: { code: 'worker/interrupted' } }],
    [
      'there never was one',
      false,
      false,
      { kind: 'failed', fault: { code: 'worker/interrupted' } },
    ],
  ])('a vanished supervisor may have left processes: %s', (_, launched, workerStarted, once) => {
    expect(classifyEnd({ kind: 'vanished', launched, workerStarted }, FACTS)).toMatchObject({
      kind: 'unreaped',
      onceReaped: once,
    })
  })

  test('only what the worker did itself costs an attempt', () => {
    const classes = REASONS.map((reason): [EndReason, string] => {
      const verdict = verdictOn({ reason, exitCode: 1 })
      return [reason, 'fault' in verdict ? FAULTS[verdict.fault.code].class : verdict.kind]
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
      if (!('fault' in verdict)) continue
      const { message, next } = verdict.fault
      expect(`${message} ${next}`).not.toMatch(/ \?|\?\.|null|undefined/)
    }
  })
})
