import { asFault } from '../core/fault.ts'
import { FAULTS, type FaultCode } from '../core/fault-catalogue.ts'
import type { FaultClass } from '../core/fault-classes.ts'
import type { Journal, RunStage } from '../core/journal.ts'
import { backoffMs } from '../core/scheduling.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { concludeRun, type Left } from './conclude-run.ts'
import { freezeRun } from './freeze-run.ts'
import { eventOfFault, waitOf } from './outcome-of-fault.ts'
import { prepareRun } from './prepare-run.ts'
import { publishRun } from './publish-run.ts'
import type { RunPorts } from './run-ports.ts'
import { settleRun } from './settle-run.ts'

// One run, from wherever its journal says it is to the end. Every step leaves the journal at the next
// stage before it returns, so that a runner which dies anywhere is followed by another that begins with
// the step it died in (design §6, §9; P§2, P§3).

type Step = Readonly<{
  carry: (ports: RunPorts, journal: Journal) => Promise<Journal | Left>
  /**
   * What a fault around us does. `requeue`: nothing is paid yet, the run ends and the issue waits for a
   * new one. `wait`: the worker's success is kept, and a later runner goes on from here.
   */
  onTrouble: 'requeue' | 'wait'
}>

const STEPS = {
  starting: { carry: own, onTrouble: 'requeue' },
  owned: { carry: prepareRun, onTrouble: 'requeue' },
  launching: { carry: concludeRun, onTrouble: 'requeue' },
  finished: { carry: freezeRun, onTrouble: 'wait' },
  publishing: { carry: publishRun, onTrouble: 'wait' },
  ended: { carry: settleRun, onTrouble: 'wait' },
} as const satisfies Record<Exclude<RunStage, 'settled'>, Step>

/** Faults that may pass by themselves. */
const PASSING: ReadonlySet<FaultClass> = new Set([
  'infrastructure',
  'rate-limited',
  'config',
  'internal',
  'state',
])

/** While a worker may be alive or has just succeeded, these tell nothing about it: the run stays reserved (P§1). */
const UNDECIDED: ReadonlySet<FaultCode> = new Set(['sys/io', 'sys/unkillable'])

export type RunEnd = Readonly<{
  /** settled: the queue knows. waiting: `notBefore` says when to go on. left: asked to leave. lost: another process has the run. */
  kind: 'settled' | 'waiting' | 'left' | 'lost'
  journal: Journal
}>

/** Carries a run as far as it goes now. Faults: only those of writing the journal or the queue itself. */
export async function carryRun(ports: RunPorts, start: Journal): Promise<RunEnd> {
  let journal: Journal = { ...start, notBefore: null }
  while (journal.stage !== 'settled') {
    if (!ports.claim.isCurrent()) return { kind: 'lost', journal }
    if (ports.signal.aborted) return { kind: 'left', journal }
    const step: Step = STEPS[journal.stage]
    ports.log.info('run step', { runId: journal.runId, stage: journal.stage })
    try {
      const next = await step.carry(ports, journal)
      if ('kind' in next) return { kind: 'left', journal }
      journal = next
    } catch (thrown) {
      if (!ports.claim.isCurrent()) return { kind: 'lost', journal }
      // The step may have written more than it returned, an open intent for one.
      const reached = ports.journals.read(journal.runId) ?? journal
      journal = meetFault(ports, reached, step, thrown)
      if (journal.notBefore !== null) return { kind: 'waiting', journal }
    }
  }
  ports.claim.release()
  return { kind: 'settled', journal }
}

/** A runner's first act: from here on an adopter knows that somebody was there. */
async function own(ports: RunPorts, journal: Journal): Promise<Journal> {
  const owned: Journal = { ...journal, stage: 'owned', runner: ports.self }
  ports.journals.write(owned)
  return owned
}

/** The journal after a fault: waiting to go on, or ended with the event the fault's class names. */
function meetFault(ports: RunPorts, journal: Journal, step: Step, thrown: unknown): Journal {
  const met = asFault(thrown)
  const now = ports.clock.now()
  ports.log.warn('run met a fault', {
    runId: journal.runId,
    stage: journal.stage,
    code: met.code,
    message: met.message,
  })
  const trouble = {
    count: (journal.trouble?.count ?? 0) + 1,
    since: journal.trouble?.since ?? toTimestamp(now),
  }
  const { backoffSeconds, maxDegradedSeconds } = ports.settings.retry
  const { class: faultClass } = FAULTS[met.code]
  const degradedTooLong =
    faultClass !== 'rate-limited' && now - fromTimestamp(trouble.since) > maxDegradedSeconds * 1000
  const keepsRun =
    step.onTrouble === 'wait' || (journal.stage === 'launching' && UNDECIDED.has(met.code))
  const waits = keepsRun && PASSING.has(faultClass)
  const jitter = ports.random()
  const after: Journal =
    waits && (!degradedTooLong || journal.stage === 'ended')
      ? {
          ...journal,
          trouble,
          notBefore: toTimestamp(
            waitOf(met, now) ?? now + backoffMs(backoffSeconds, trouble.count, jitter),
          ),
        }
      : {
          ...journal,
          stage: 'ended',
          notBefore: null,
          outcome: endOf(journal, keepsRun, met, now, jitter),
        }
  ports.journals.write(after)
  return after
}

/** Paid work that cannot go on by itself needs a human; it is never thrown away for a new attempt. */
function endOf(
  journal: Journal,
  keepsRun: boolean,
  met: ReturnType<typeof asFault>,
  now: number,
  jitter: number,
): Journal['outcome'] {
  const event = eventOfFault(met, { runId: journal.runId, now, jitter })
  const startsAnew = event.on === 'infrastructure-failed' || event.on === 'interrupted'
  return keepsRun && startsAnew ? { ...event, on: 'blocked' } : event
}
