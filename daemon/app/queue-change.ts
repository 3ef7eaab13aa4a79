import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { countEffects } from '../core/effects.ts'
import { type Fault, fault } from '../core/fault.ts'
import {
  formatIssue,
  type IssueKey,
  issueId,
  repositoryOf,
  requireIssueKey,
} from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim } from '../core/ports.ts'
import type { QueueEntry, QueueState } from '../core/queue.ts'
import {
  closeCircuits,
  fateOfRun,
  giveUpRun,
  QUEUE_VERBS,
  type QueueVerb,
  type RunFate,
  refusalHint,
} from '../core/queue-change.ts'
import { makeRunId } from '../core/run-id.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue } from '../core/transitions.ts'
import { requestCancel, sweepRun } from '../executor/run-files.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { fileStatus, isDirectory } from '../sys/files.ts'
import { killOwned } from '../sys/find-processes.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openLog } from './open-log.ts'
import { type LastRun, openQueue, type QueueParts, readLastRun } from './queue-report.ts'
import { oneLine } from './render-queue.ts'
import { tickSettingsOf } from './settings-of.ts'
import { waitForTickLock } from './tick-lock.ts'

const LOOK_MS = 50
/** How long a supervisor has for ending its worker before the command goes on without having seen it. */
const WORKER_END_MS = LIMITS.termGraceMs + LIMITS.killBoundMs + 3000

export type QueueChangeRequest = Readonly<{
  verb: QueueVerb
  /** `owner/repo#number`, as typed. */
  issue: string
  /** Tell what would happen; take no lock and write nothing. */
  dryRun: boolean
  /** `--force-finalization-reset`: paid work that could go on is dropped. */
  isForced: boolean
}>

/** `queue reset --json`, `queue reprocess --json`. With `dry_run` it is what would become of the entry. */
export type QueueChange = Readonly<{
  issue: string
  phase_before: string
  phase: string
  generation_before: number
  generation: number
  /** The run whose paid work goes on without another worker. */
  resumed_run: string | null
  /** The run whose work could have gone on, or was under way, and is given up. */
  dropped_run: string | null
  dry_run: boolean
  circuits_closed: readonly string[]
}>

type Parts = QueueParts & Readonly<{ config: Config; note: (line: string) => void }>

type Plan = Readonly<{ entry: QueueEntry; last: LastRun; fate: RunFate }>

/**
 * Puts an entry back into the queue (R§1.7, R§1.8 with W15 mended). Order of the writes: the queue first,
 * because recovery goes by the run the entry names; then the journal of the run that is over; the claim
 * last. Killed anywhere in between, the next tick finds either the old entry or the new one with a free
 * claim, which it clears away.
 * @param note a line for the operator, told before anything is changed
 * @returns the report, and lines that say it to people
 * Faults: usage/invalid, queue/*, state/*, config/*, sys/io.
 */
export async function changeQueueEntry(
  request: QueueChangeRequest,
  note: (line: string) => void,
): Promise<Readonly<{ report: QueueChange; lines: readonly string[] }>> {
  const key = requireIssueKey(request.issue, `queue ${request.verb}`)
  const { config } = loadProgramConfig(readEnvironment())
  const parts: Parts = { ...openCounted(config, !request.dryRun), config, note }
  // Before any lock, so that nothing is made or waited for when there is nothing to do.
  const looked = planOf(parts, request, key)
  if (request.dryRun) {
    if (parts.claims.isHeld(key)) throw aliveFault(looked)
    const changed = putBack(parts, request, looked, parts.store.readQueue())
    const report = reportOf(request, looked, changed)
    return { report, lines: linesOf(parts, request, looked, report) }
  }
  const lock = await waitForTickLock(parts)
  try {
    return await changeUnderLock(parts, request, key)
  } finally {
    lock.close()
  }
}

/** The same adapters, each call announced as an effect (design §2). */
function openCounted(...request: Parameters<typeof openQueue>): QueueParts {
  const parts = openQueue(...request)
  return {
    ...parts,
    store: countEffects('store', parts.store, announceEffect),
    journals: countEffects('journals', parts.journals, announceEffect),
    claims: countEffects('claims', parts.claims, announceEffect),
  }
}

function planOf(parts: Parts, { verb, isForced }: QueueChangeRequest, key: IssueKey): Plan {
  const entry = parts.store.readQueue().entries[issueId(key)]
  const issue = formatIssue(entry?.key ?? key)
  if (entry === undefined) throw fault('queue/unknown', { issue })
  const hint = refusalHint(verb, entry)
  if (hint !== null) throw fault('queue/refused', { issue, phase: entry.phase, verb, hint })
  const last = readLastRun(parts, entry)
  const isKept = last.journal !== null && isWorkKept(parts, last.journal)
  return { entry, last, fate: fateOfRun(verb, entry, last.journal, { isKept, isForced }) }
}

function isWorkKept({ layout }: Parts, { runId, treePath }: Journal): boolean {
  return fileStatus(layout.run(runId).result) !== null && isDirectory(treePath)
}

/** With the tick lock in hand a held claim is a runner at work: no tick is about to hand one over. */
async function changeUnderLock(
  parts: Parts,
  request: QueueChangeRequest,
  key: IssueKey,
): Promise<Readonly<{ report: QueueChange; lines: readonly string[] }>> {
  const looked = planOf(parts, request, key)
  const claim = parts.claims.take(key, looked.last.runId ?? newRunId(parts))
  if (claim === null) throw aliveFault(looked)
  try {
    // Read again: a runner may have ended between the look and the claim.
    const plan = planOf(parts, request, key)
    for (const line of warnings(parts, plan)) parts.note(line)
    killLeftovers(plan)
    const changed = await parts.store.changeQueue((queue) => {
      const value = putBack(parts, request, plan, queue)
      return { state: value.queue, value }
    })
    await endLastRun(parts, claim, plan)
    const report = reportOf(request, plan, changed)
    const audit = { verb: request.verb, ...report }
    openLog(parts.config.logPath, 'queue', parts.clock, () => []).info('queue changed', audit)
    return { report, lines: linesOf(parts, request, plan, report) }
  } finally {
    claim.close()
  }
}

/** Names a claim when the entry never had a run; no journal of that name will ever be found. */
function newRunId({ clock }: Parts): string {
  return makeRunId(clock.now(), randomBytes(10))
}

function aliveFault({ entry, last }: Plan): Fault {
  const pid = last.journal?.runner?.pid
  const run = `${last.runId ?? 'unknown'}${pid === undefined ? '' : ` (process ${pid})`}`
  return fault('queue/run-alive', { issue: formatIssue(entry.key), run })
}

/** What a dead runner has left must not act on a run that is given up (P§1). */
function killLeftovers({ last: { journal } }: Plan): void {
  if (journal === null || journal.stage === 'settled' || journal.runner === null) return
  killOwned(journal.runner)
}

type PutBack = Readonly<{ queue: QueueState; entry: QueueEntry; closed: readonly string[] }>

/** The queue with the entry put back, and its circuits closed. */
function putBack(
  { clock, config }: Parts,
  { verb }: QueueChangeRequest,
  { entry: { key, phase }, fate }: Plan,
  queue: QueueState,
): PutBack {
  const { retry, circuits: policy } = tickSettingsOf(config)
  const now = clock.now()
  const resume = fate.kind === 'resumed' ? { resume: fate.runId } : {}
  const event = { on: QUEUE_VERBS[verb].event, at: toTimestamp(now), ...resume } as const
  const { queue: applied, entry } = applyToQueue(queue, issueId(key), event, retry)
  if (entry === null) {
    throw fault('queue/refused', { issue: formatIssue(key), phase, verb, hint: 'Try again.' })
  }
  const { circuits, closed } = closeCircuits(queue.circuits, key, now, policy)
  return { queue: { ...applied, circuits }, entry, closed }
}

/** The run is over for good: its journal says so, its worker is ended, and its claim goes last. */
async function endLastRun(parts: Parts, claim: Claim, { entry, last }: Plan): Promise<void> {
  const { runId, journal } = last
  if (runId !== null && last.problem !== null) {
    await endWorker(parts, entry.key, runId)
  } else if (journal !== null) {
    const givenUp = giveUpRun(journal)
    const mayHaveWorker = journal.stage === 'launching' || journal.endedIn === 'launching'
    if (mayHaveWorker) requestCancel(parts.layout.run(journal.runId).control)
    if (givenUp !== journal) parts.journals.write(givenUp)
    if (mayHaveWorker) await endWorker(parts, entry.key, journal.runId)
  }
  claim.release()
}

/** Through its supervisor, which looks for the wish several times a second; else what is left is swept. */
async function endWorker(parts: Parts, key: IssueKey, runId: string): Promise<void> {
  const { layout, clock, note } = parts
  const { directory, control, supervisorLock, launch, exit } = layout.run(runId)
  if (fileStatus(launch) === null) return // there never was a supervisor
  requestCancel(control)
  // Counted in looks: a clock that is set meanwhile must not end the wait.
  for (let waitedMs = 0; isLocked(supervisorLock); waitedMs += LOOK_MS) {
    if (waitedMs >= WORKER_END_MS) {
      note(`The worker of run ${runId} has not ended yet; its supervisor goes on ending it.`)
      return
    }
    await clock.sleep(LOOK_MS)
  }
  if (fileStatus(exit) !== null) return
  const treePath = layout.worktree(repositoryOf(key), runId)
  const swept = await sweepRun(clock, { runId, directory, treePath })
  if (swept.kind === 'unkillable') {
    note(`Processes of run ${runId} could not be ended: ${swept.pids.join(', ')}.`)
  }
}

/** What the operator has to know before it is done. */
function warnings({ config }: Parts, { entry, last, fate }: Plan): readonly string[] {
  const { journal, problem } = last
  if (problem !== null) return [`Nothing of run ${last.runId} goes on: ${problem}`]
  if (fate.kind !== 'dropped' || journal === null) return []
  const { pr_created: number, committed } = journal.markers
  const pull = number === undefined ? 'none' : `#${number} ${entry.pull?.url ?? ''}`.trim()
  const isInTheWay = number !== undefined && config.existingPr === 'skip'
  return [
    `The work of run ${fate.runId} is given up: branch ${journal.branch}, stage ${fate.stage}, ` +
      `pull request ${pull}, commit ${committed ?? 'none'}. ` +
      'The remote branch and the pull request are not deleted.',
    ...(isInTheWay
      ? ['While that pull request is open, a new run is skipped (existing_pr): close it first.']
      : []),
  ]
}

function reportOf(
  { dryRun }: QueueChangeRequest,
  { entry: before, fate }: Plan,
  { entry: after, closed }: PutBack,
): QueueChange {
  return {
    issue: formatIssue(before.key),
    phase_before: before.phase,
    phase: after.phase,
    generation_before: before.generation,
    generation: after.generation,
    resumed_run: fate.kind === 'resumed' ? fate.runId : null,
    dropped_run: fate.kind === 'dropped' ? fate.runId : null,
    dry_run: dryRun,
    circuits_closed: closed,
  }
}

function linesOf(
  { config }: Parts,
  { verb, dryRun }: QueueChangeRequest,
  { entry, last, fate }: Plan,
  report: QueueChange,
): readonly string[] {
  const { issue, generation_before: before, generation } = report
  const as = before === generation ? `generation ${before}` : `generation ${before} → ${generation}`
  const head = dryRun
    ? [
        `${issue} is ${entry.phase}: attempts ${entry.attempts}, last run ${last.runId ?? 'none'}, ` +
          `last error: ${oneLine(entry.lastError?.message ?? 'none')}`,
        `A ${verb} would queue it again, as ${as}.`,
      ]
    : [`${issue} was ${entry.phase} and is queued again, as ${as}.`]
  const run = {
    nothing: 'A new run begins; its attempts count from zero.',
    resumed: `Its run ${last.runId} goes on at the stage "${'stage' in fate ? fate.stage : ''}", without another worker.`,
    dropped: `A new run begins; nothing of run ${last.runId} goes on.`,
  }[fate.kind]
  const label = config.triggerLabels[entry.ticket]
  const next = dryRun
    ? 'Nothing was changed.'
    : `The next tick picks it up: caduceus run. The issue must be open and carry its label (${label}) then.`
  const closed = report.circuits_closed
  const mended = closed.length === 0 ? [] : [`Closed, so that it may start: ${closed.join(', ')}.`]
  return [...head, run, ...mended, next]
}
