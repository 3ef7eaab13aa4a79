import { randomBytes } from 'node:crypto'
import type { Config } from '../config/make-config.ts'
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
import type { QueueEntry, QueueState } from '../core/queue-state.ts'
import {
  closeCircuits,
  fateOfRun,
  giveUpRun,
  QUEUE_VERBS,
  refusalHint,
} from '../core/queue-verbs.ts'
import { makeRunId } from '../core/run-id.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue } from '../core/transitions.ts'
import { reapRun, requestCancel } from '../supervision/control-run.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { fileStatus, isDirectory } from '../sys/files.ts'
import { killOwned } from '../sys/find-processes.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openLog } from './open-log.ts'
import { openQueue, type QueueParts, readLastRun } from './queue-report.ts'
import {
  describeQueueChange,
  type QueueChangePlan as Plan,
  type QueueChange,
  type QueueChangeRequest,
  reportQueueChange,
} from './report-queue-change.ts'
import { tickSettingsOf } from './settings-of.ts'
import { waitForTickLock } from './tick-lock.ts'

const PROBE_INTERVAL_MS = 50
/** How long a supervisor has for ending its worker before the command goes on without having seen it. */
const WORKER_END_MS = LIMITS.termGraceMs + LIMITS.killBoundMs + 3000

type Parts = QueueParts & Readonly<{ config: Config; note: (line: string) => void }>

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
  const probed = planOf(parts, request, key)
  if (request.dryRun) {
    if (parts.claims.isHeld(key)) throw aliveFault(probed)
    const changed = putBack(parts, request, probed, parts.store.readQueue())
    const report = reportQueueChange(request, probed, changed)
    return { report, lines: describeQueueChange(config, request, probed, report) }
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
  const isRetained = last.journal !== null && isWorkRetained(parts, last.journal)
  return {
    entry,
    last,
    fate: fateOfRun(verb, entry, last.journal, { isKept: isRetained, isForced }),
  }
}

function isWorkRetained({ layout }: Parts, { runId, treePath }: Journal): boolean {
  return fileStatus(layout.run(runId).result) !== null && isDirectory(treePath)
}

/** With the tick lock in hand a held claim is a runner at work: no tick is about to hand one over. */
async function changeUnderLock(
  parts: Parts,
  request: QueueChangeRequest,
  key: IssueKey,
): Promise<Readonly<{ report: QueueChange; lines: readonly string[] }>> {
  const probed = planOf(parts, request, key)
  const claim = parts.claims.take(key, probed.last.runId ?? newRunId(parts))
  if (claim === null) throw aliveFault(probed)
  try {
    // Read again: a runner may have ended between the look and the claim.
    const plan = planOf(parts, request, key)
    for (const line of warnings(parts, plan)) parts.note(line)
    killOrphans(plan)
    const changed = await parts.store.changeQueue((queue) => {
      const value = putBack(parts, request, plan, queue)
      return { state: value.queue, value }
    })
    await endLastRun(parts, claim, plan)
    const report = reportQueueChange(request, plan, changed)
    const audit = { verb: request.verb, ...report }
    openLog(parts.config.logPath, 'queue', parts.clock, () => []).info('queue changed', audit)
    return { report, lines: describeQueueChange(parts.config, request, plan, report) }
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
function killOrphans({ last: { journal } }: Plan): void {
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
  for (let waitedMs = 0; isLocked(supervisorLock); waitedMs += PROBE_INTERVAL_MS) {
    if (waitedMs >= WORKER_END_MS) {
      note(`The worker of run ${runId} has not ended yet; its supervisor goes on ending it.`)
      return
    }
    await clock.sleep(PROBE_INTERVAL_MS)
  }
  if (fileStatus(exit) !== null) return
  const treePath = layout.worktree(repositoryOf(key), runId)
  const reaped = await reapRun(clock, { runId, directory, treePath })
  if (reaped.kind === 'unkillable') {
    note(`Processes of run ${runId} could not be ended: ${reaped.pids.join(', ')}.`)
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
