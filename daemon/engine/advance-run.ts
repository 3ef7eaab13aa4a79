import { backoffMs } from '../core/backoff.ts'
import { afterFailure } from '../core/circuit-changes.ts'
import { addDiagnostics } from '../core/diagnostics.ts'
import { asFault, type Fault, isFaultOf } from '../core/fault.ts'
import { FAULTS } from '../core/fault-catalogue.ts'
import type { FaultClass } from '../core/fault-classes.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal, RunStage } from '../core/journal.ts'
import { sinceWhen, toTimestamp } from '../core/timestamp.ts'
import { lastsTooLong } from '../core/transitions.ts'
import { renderNotice } from '../publish/render-publication.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { concludeRun, type Left } from './conclude-run.ts'
import { eventOfFault, waitOf } from './outcome-of-fault.ts'
import { preparePublication } from './prepare-publication.ts'
import { prepareRun } from './prepare-run.ts'
import { publishRun } from './publish-run.ts'
import { recordEnd } from './record-end.ts'
import type { RunPorts } from './run-ports.ts'
import type { RunSettings } from './tick-ports.ts'

// One run, from wherever its journal says it is to the end. Every step leaves the journal at the next
// stage before it returns, so that a runner which dies anywhere is followed by another that begins with
// the step it died in (design §6, §9; P§2, P§3).

type Step = Readonly<{
  advance: (ports: RunPorts, journal: Journal) => Promise<Journal | Left>
  /**
   * What a fault around us does. `requeue`: nothing is paid yet, the run ends and the issue waits for a
   * new one. `wait`: the worker's success is kept, and a later runner goes on from here.
   */
  onFailure: 'requeue' | 'wait'
  /** How long it takes at the very most (milliseconds); an owner that needs longer is replaced (P§1). */
  boundMs: (settings: RunSettings) => number
}>

const STEPS = {
  starting: {
    advance: async (_, journal) => ({ ...journal, stage: 'owned' }),
    onFailure: 'requeue',
    boundMs: ({ stepMs }) => stepMs,
  },
  owned: { advance: prepareRun, onFailure: 'requeue', boundMs: ({ stepMs }) => 3 * stepMs },
  launching: {
    advance: concludeRun,
    onFailure: 'requeue',
    boundMs: ({ stepMs, worker }) => worker.timeoutMs + stepMs,
  },
  finished: { advance: preparePublication, onFailure: 'wait', boundMs: ({ stepMs }) => 2 * stepMs },
  publishing: { advance: publishRun, onFailure: 'wait', boundMs: ({ stepMs }) => stepMs },
  ended: { advance: recordEnd, onFailure: 'wait', boundMs: ({ stepMs }) => stepMs },
} as const satisfies Record<Exclude<RunStage, 'settled'>, Step>

/** Faults that may pass by themselves. */
const PASSING: ReadonlySet<FaultClass> = new Set([
  'infrastructure',
  'rate-limited',
  'config',
  'internal',
  'state',
])

export type RunEnd = Readonly<{
  /** settled: the queue knows. waiting: `notBefore` says when to go on. left: asked to leave. lost: another process has the run. */
  kind: 'settled' | 'waiting' | 'left' | 'lost'
  journal: Journal
}>

/** Carries a run as far as it goes now. Faults: only those of its own state: journal, queue, notes, locks. */
export async function advanceRun(ports: RunPorts, start: Journal): Promise<RunEnd> {
  let journal: Journal = { ...start, notBefore: null }
  while (journal.stage !== 'settled') {
    if (!ports.claim.isCurrent()) return { kind: 'lost', journal }
    if (ports.signal.aborted) return leave(ports, journal)
    const step: Step = STEPS[journal.stage]
    ports.log.info('run step', { runId: journal.runId, stage: journal.stage })
    try {
      journal = ownStep(ports, journal, step)
      const next = await step.advance(ports, journal)
      if ('kind' in next) return leave(ports, journal)
      journal = { ...next, adoptions: 0, trouble: null }
    } catch (thrown) {
      if (!ports.claim.isCurrent()) return { kind: 'lost', journal }
      // The step may have written more than it returned, an open intent for one.
      const reached = ports.journals.read(journal.runId) ?? journal
      journal = await handleFault(ports, reached, step, thrown)
      if (journal.notBefore !== null) return { kind: 'waiting', journal }
    }
  }
  ports.claim.release()
  return { kind: 'settled', journal }
}

/**
 * Before each step, durable: who has the run, and until when at the latest. From `owned` on an adopter
 * knows that somebody was there.
 */
function ownStep(ports: RunPorts, journal: Journal, step: Step): Journal {
  if (journal.stage === 'starting') return journal
  const until = ports.clock.now() + step.boundMs(ports.settings)
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

/** The journal after a fault: waiting to go on, telling it on the issue, or ended with the event of its class. */
async function handleFault(
  ports: RunPorts,
  journal: Journal,
  step: Step,
  thrown: unknown,
): Promise<Journal> {
  const met = asFault(thrown)
  const now = ports.clock.now()
  ports.log.warn('run met a fault', {
    runId: journal.runId,
    stage: journal.stage,
    code: met.code,
    message: met.message,
  })
  const { class: faultClass } = FAULTS[met.code]
  const isAround = PASSING.has(faultClass)
  const isReserved = isAround && mayStillAct(ports, journal, met)
  // Files that cannot be read or written tell nothing about a worker, which may just have succeeded.
  const isUndecided = journal.stage === 'launching' && met.code === 'sys/io'
  const retainsRun = step.onFailure === 'wait' || isReserved || isUndecided
  const trouble = {
    count: (journal.trouble?.count ?? 0) + 1,
    since: sinceWhen(journal.trouble?.since, toTimestamp(now)),
  }
  const isTooLong =
    faultClass !== 'rate-limited' && lastsTooLong(trouble, ports.settings.retry, now)
  const mayPass = isAround && (isReserved || !isTooLong)
  // The end itself is never given up: what it says is decided.
  const after =
    journal.stage === 'ended' || (retainsRun && mayPass)
      ? await waiting(ports, { ...journal, trouble }, met, now)
      : (noticed(ports, journal, met) ?? endedBy(ports, journal, retainsRun, met))
  ports.journals.write(after)
  if (isReserved && isTooLong) await noteAttention(ports, journal, met, now)
  return after
}

/**
 * Whether processes of the run may still be there. Then no trouble ends it, however long it lasts: the
 * next run would be a second worker, and remove the tree under the first one (P§1).
 */
function mayStillAct({ layout }: RunPorts, { stage, runId }: Journal, met: Fault): boolean {
  if (stage !== 'launching') return false
  const { supervisorLock, treeLock } = layout.run(runId)
  return met.code === 'sys/unkillable' || isLocked(supervisorLock) || isLocked(treeLock)
}

/** Only a human can end what keeps the run reserved, and its issue stays in progress: `status` notes it. */
async function noteAttention(
  { store }: RunPorts,
  { key }: Journal,
  { code, message, next }: Fault,
  now: number,
): Promise<void> {
  const text = `needs attention: ${message} ${next}`.trimEnd()
  const note = { at: toTimestamp(now), code, issue: formatIssue(key), message: text }
  await store.changeMeta((meta) => {
    const diagnostics = addDiagnostics(meta.diagnostics, [note])
    const state = diagnostics === meta.diagnostics ? meta : { ...meta, diagnostics }
    return { state, value: undefined }
  })
}

/** Work that is paid for waits for better times, and new work is kept from being started into the same. */
async function waiting(
  ports: RunPorts,
  journal: Journal,
  met: Fault,
  now: number,
): Promise<Journal> {
  const { retry, circuits } = ports.settings
  await ports.store.changeQueue((queue) => {
    const failed = afterFailure(queue.circuits, journal.key, met, now, circuits)
    const state = failed === queue.circuits ? queue : { ...queue, circuits: failed }
    return { state, value: undefined }
  })
  const backoff = backoffMs(retry.backoffSeconds, journal.trouble?.count ?? 1, ports.random())
  return {
    ...journal,
    adoptions: 0,
    runner: null,
    notBefore: toTimestamp(waitOf(met, now) ?? now + backoff),
  }
}

/** Contradictions that people on GitHub would else wonder about: one comment says so (P§3). */
function noticeOf(caught: Fault, { branch }: Journal): string | null {
  if (isFaultOf(caught, 'git/foreign-branch')) {
    return (
      `The branch \`${branch}\` holds a commit that is not part of this work (${caught.details.found}). ` +
      'Nothing was overwritten and no pull request was opened; the work is kept where it was done.'
    )
  }
  if (isFaultOf(caught, 'github/foreign-pull')) {
    return (
      `Pull request #${caught.details.number} was opened from the branch \`${branch}\` by another account. ` +
      'It was left as it is, and no other one was opened.'
    )
  }
  return null
}

/** The run with the notice as what is left to publish; null = there is nothing to say, or no way to say it. */
function noticed(ports: RunPorts, journal: Journal, met: Fault): Journal | null {
  const { publication } = journal
  const text = noticeOf(met, journal)
  if (text === null || journal.stage !== 'publishing' || publication === null) return null
  const notice = renderNotice(journal, publication, text, ports.settings.policy)
  if (notice === null || publication.plan === 'notice') return null
  const run = { runId: journal.runId, now: ports.clock.now(), jitter: 0 }
  return {
    ...journal,
    publication: notice,
    intent: null,
    outcome: eventOfFault(met, run),
    endedIn: 'publishing',
  }
}

function endedBy(ports: RunPorts, journal: Journal, retainsRun: boolean, met: Fault): Journal {
  const run = { runId: journal.runId, now: ports.clock.now(), jitter: ports.random() }
  const event = eventOfFault(met, run)
  const startsAnew = event.on === 'infrastructure-failed' || event.on === 'interrupted'
  return {
    ...journal,
    stage: 'ended',
    notBefore: null,
    endedIn: journal.endedIn ?? journal.stage,
    // Paid work that cannot go on by itself needs a human; it is never thrown away for a new attempt.
    outcome: journal.outcome ?? (retainsRun && startsAnew ? { ...event, on: 'blocked' } : event),
  }
}
