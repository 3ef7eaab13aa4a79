import { type AfterFault, afterFault } from '../core/after-fault.ts'
import { backoffMs } from '../core/backoff.ts'
import { afterFailure } from '../core/circuit-changes.ts'
import { addDiagnostics } from '../core/diagnostics.ts'
import { asFault, type Fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal, RunStage } from '../core/journal.ts'
import { sinceWhen, toTimestamp } from '../core/timestamp.ts'
import { lastsTooLong, type PhaseEvent } from '../core/transitions.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { concludeRun } from './conclude-run.ts'
import { eventOfFault, waitOf } from './outcome-of-fault.ts'
import { preparePublication } from './prepare-publication.ts'
import { prepareRun } from './prepare-run.ts'
import { publishRun } from './publish-run.ts'
import { recordEnd } from './record-end.ts'
import type { RunPorts } from './run-ports.ts'
import { LEFT, next, type StageResult, wait } from './stage-result.ts'
import type { RunSettings } from './tick-ports.ts'

// One run, from wherever its journal says it is to the end. Every stage leaves the journal at the next one before it
// returns, so that a runner which dies anywhere is followed by another that begins with the stage it died in
// (PROTOCOLS, Adoption).

type Handler = Readonly<{
  advance: (ports: RunPorts, journal: Journal) => Promise<StageResult>
  /** How long it takes at the very most (milliseconds); an owner that needs longer is replaced. */
  boundMs: (settings: RunSettings) => number
}>

const HANDLERS = {
  starting: {
    advance: async (_, journal) => next({ ...journal, stage: 'owned' }),
    boundMs: ({ stepMs }) => stepMs,
  },
  owned: { advance: prepareRun, boundMs: ({ stepMs }) => 3 * stepMs },
  launching: {
    advance: concludeRun,
    boundMs: ({ stepMs, worker }) => worker.timeoutMs + stepMs,
  },
  finished: { advance: preparePublication, boundMs: ({ stepMs }) => 2 * stepMs },
  publishing: { advance: publishRun, boundMs: ({ stepMs }) => stepMs },
  ended: { advance: recordEnd, boundMs: ({ stepMs }) => stepMs },
} as const satisfies Record<Exclude<RunStage, 'settled'>, Handler>

export type RunEnd = Readonly<{
  /** settled: the queue knows. waiting: `notBefore` says when to go on. left: asked to leave. lost: another process has the run. */
  kind: 'settled' | 'waiting' | 'left' | 'lost'
  journal: Journal
}>

/** Advances a run as far as it goes now. Faults: only those of its own state: journal, queue, notes, locks. */
export async function advanceRun(ports: RunPorts, start: Journal): Promise<RunEnd> {
  let journal: Journal = { ...start, notBefore: null }
  while (journal.stage !== 'settled') {
    if (!ports.claim.isCurrent()) return { kind: 'lost', journal }
    if (ports.signal.aborted) return leave(ports, journal)
    ports.log.info('run stage', { runId: journal.runId, stage: journal.stage })
    const result = await advanceStage(ports, journal, HANDLERS[journal.stage])
    if (result.kind !== 'next' && !ports.claim.isCurrent()) return { kind: 'lost', journal }
    switch (result.kind) {
      case 'next':
        journal = { ...result.journal, adoptions: 0, trouble: null }
        break
      case 'end':
        journal = endRun(ports, result.journal, result.event)
        break
      case 'wait':
        journal = await holdUp(ports, result.journal, result.reason)
        if (journal.notBefore !== null) return { kind: 'waiting', journal }
        break
      case 'left':
        return leave(ports, journal)
      default:
        return result satisfies never
    }
  }
  ports.claim.release()
  return { kind: 'settled', journal }
}

/** One stage; everything that is thrown in it comes out here as a reason to wait. */
async function advanceStage(
  ports: RunPorts,
  journal: Journal,
  handler: Handler,
): Promise<StageResult> {
  let owned = journal
  try {
    owned = ownStage(ports, journal, handler)
    return await handler.advance(ports, owned)
  } catch (thrown) {
    if (!ports.claim.isCurrent()) return LEFT
    const caught = asFault(thrown)
    const { runId, stage } = journal
    const { code, message } = caught
    ports.log.warn('run met a fault', { runId, stage, code, message })
    // The stage may have written more than it returned, an open intent for one.
    return wait(ports.journals.read(runId) ?? owned, caught)
  }
}

/**
 * Before each stage, durable: who has the run, and until when at the latest. From `owned` on an adopter knows that
 * somebody was there.
 */
function ownStage(ports: RunPorts, journal: Journal, handler: Handler): Journal {
  if (journal.stage === 'starting') return journal
  const until = ports.clock.now() + handler.boundMs(ports.settings)
  const owned: Journal = { ...journal, runner: ports.self, ownedUntil: toTimestamp(until) }
  ports.journals.write(owned)
  return owned
}

/** Asked to leave: whoever takes the run over need not ask what became of us. */
function leave(ports: RunPorts, journal: Journal): RunEnd {
  const left: Journal = { ...journal, adoptions: 0, runner: null }
  if (journal.stage !== 'starting') ports.journals.write(left)
  return { kind: 'left', journal: left }
}

/** The journal of a run that could not advance: waiting to go on, or ended by what kept it. */
async function holdUp(ports: RunPorts, journal: Journal, reason: Fault): Promise<Journal> {
  const now = ports.clock.now()
  const trouble = {
    count: (journal.trouble?.count ?? 0) + 1,
    since: sinceWhen(journal.trouble?.since, toTimestamp(now)),
  }
  const after: AfterFault = afterFault({
    stage: journal.stage,
    code: reason.code,
    mayStillAct: mayStillAct(ports, journal, reason),
    isTooLong: lastsTooLong(trouble, ports.settings.retry, now),
  })
  if (after.kind === 'end') {
    const run = { runId: journal.runId, now, jitter: ports.random() }
    return endRun(ports, journal, { ...eventOfFault(reason, run), on: after.on })
  }
  const waiting = await waitForBetter(ports, { ...journal, trouble }, reason, now)
  ports.journals.write(waiting)
  if (after.needsAttention) await noteAttention(ports, journal, reason, now)
  return waiting
}

/**
 * Whether processes of the run may still be there. Then no failure ends it, however long it lasts: the next run would
 * be a second worker, and remove the tree under the first one (PROTOCOLS, Ending processes).
 */
function mayStillAct({ layout }: RunPorts, { stage, runId }: Journal, reason: Fault): boolean {
  if (stage !== 'launching') return false
  const { supervisorLock, treeLock } = layout.run(runId)
  return reason.code === 'sys/unkillable' || isLocked(supervisorLock) || isLocked(treeLock)
}

/** Only a human can end what keeps the run reserved, and its issue stays in progress: `status` notes it. */
async function noteAttention(
  { store }: RunPorts,
  { key }: Journal,
  { code, message, next: step }: Fault,
  now: number,
): Promise<void> {
  const text = `needs attention: ${message} ${step}`.trimEnd()
  const note = { at: toTimestamp(now), code, issue: formatIssue(key), message: text }
  await store.changeMeta((meta) => {
    const diagnostics = addDiagnostics(meta.diagnostics, [note])
    const state = diagnostics === meta.diagnostics ? meta : { ...meta, diagnostics }
    return { state, value: undefined }
  })
}

/** The journal of a run that goes on later; new work is kept from being started into the same. */
async function waitForBetter(
  ports: RunPorts,
  journal: Journal,
  reason: Fault,
  now: number,
): Promise<Journal> {
  const { retry, circuits } = ports.settings
  await ports.store.changeQueue((queue) => {
    const failed = afterFailure(queue.circuits, journal.key, reason, now, circuits)
    const state = failed === queue.circuits ? queue : { ...queue, circuits: failed }
    return { state, value: undefined }
  })
  const backoff = backoffMs(retry.backoffSeconds, journal.trouble?.count ?? 1, ports.random())
  return {
    ...journal,
    adoptions: 0,
    runner: null,
    notBefore: toTimestamp(waitOf(reason, now) ?? now + backoff),
  }
}

/** The run is over; the stage it stood at says from where a human may let it go on. */
function endRun(ports: RunPorts, journal: Journal, event: PhaseEvent): Journal {
  const ended: Journal = {
    ...journal,
    stage: 'ended',
    notBefore: null,
    endedIn: journal.endedIn ?? journal.stage,
    outcome: journal.outcome ?? event,
  }
  ports.journals.write(ended)
  return ended
}
