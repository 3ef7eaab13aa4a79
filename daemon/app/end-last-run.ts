import type { Config } from '../config/make-config.ts'
import { giveUpRun } from '../core/fate-of-run.ts'
import { type IssueKey, repositoryOf } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim } from '../core/ports.ts'
import { requestCancel } from '../supervision/control-run.ts'
import { reapRun } from '../supervision/reap-run.ts'
import { fileStatus } from '../sys/files.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { killOwned } from '../sys/owner-mark.ts'
import type { QueueParts } from './open-queue.ts'
import type { QueueChangePlan } from './report-queue-change.ts'

const PROBE_INTERVAL_MS = 50
/** How long the command waits for a supervisor to end its worker. */
const WORKER_END_MS = LIMITS.termGraceMs + LIMITS.killBoundMs + 3000

/** @property note prints a line for the operator */
export type QueueChangeParts = QueueParts &
  Readonly<{ config: Config; note: (line: string) => void }>

/**
 * Kills what a dead runner left running, so that it cannot act on a run that is given up (PROTOCOLS, Ending
 * processes).
 */
export function killOrphans({ last: { journal } }: QueueChangePlan): void {
  if (journal === null || journal.stage === 'settled' || journal.runner === null) return
  killOwned(journal.runner)
}

/**
 * Ends the last run for good: the journal is marked, the worker ended, and the claim released last, so that
 * each step is repeated when this process dies (PROTOCOLS, Locks and hand-over).
 */
export async function endLastRun(
  parts: QueueChangeParts,
  claim: Claim,
  { entry, last }: QueueChangePlan,
): Promise<void> {
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

/** Has the supervisor end its worker. When the supervisor died before it reported the end, its orphans are reaped. */
async function endWorker(parts: QueueChangeParts, key: IssueKey, runId: string): Promise<void> {
  const { layout, clock, note } = parts
  const { directory, control, supervisorLock, launch, exit } = layout.run(runId)
  if (fileStatus(launch) === null) return // there never was a supervisor
  requestCancel(control)
  // The wait is counted in probes, so that setting the clock cannot end it.
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
