import { randomBytes } from 'node:crypto'
import { countEffects } from '../core/effects.ts'
import { type Fault, fault } from '../core/fault.ts'
import { formatIssue, type IssueKey, requireIssueKey } from '../core/issue-key.ts'
import { makeRunId } from '../core/run-id.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { endLastRun, killOrphans, type QueueChangeParts } from './end-last-run.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openLog } from './open-log.ts'
import { openQueue, type QueueParts } from './open-queue.ts'
import { planQueueChange, warningsOf } from './plan-queue-change.ts'
import {
  describeQueueChange,
  type QueueChange,
  type QueueChangePlan,
  type QueueChangeRequest,
  reportQueueChange,
} from './report-queue-change.ts'
import { requeueEntry } from './requeue-entry.ts'
import { waitForTickLock } from './tick-lock.ts'

/**
 * `queue reset` and `queue reprocess`: puts an entry back into the queue. Order of the writes: the queue first,
 * because recovery goes by the run that the entry names; then the journal of the run that is over; the claim
 * last. When this process is killed in between, the next tick finds either the old entry, or the new one with a
 * free claim, which it removes.
 * @param note prints a line for the operator before anything is changed
 * @returns the report, and the same as lines for people
 * Faults: usage/invalid, queue/*, state/*, config/*, sys/io.
 */
export async function changeQueueEntry(
  request: QueueChangeRequest,
  note: (line: string) => void,
): Promise<Readonly<{ report: QueueChange; lines: readonly string[] }>> {
  const key = requireIssueKey(request.issue, `queue ${request.verb}`)
  const { config } = loadProgramConfig(readEnvironment())
  const parts: QueueChangeParts = { ...openCountedQueue(config, !request.dryRun), config, note }
  // Planned before any lock: a refused change neither waits nor creates a file.
  const plan = planQueueChange(parts, request, key)
  if (request.dryRun) {
    if (parts.claims.isHeld(key)) throw aliveFault(plan)
    const changed = requeueEntry(parts, request, plan, parts.store.readQueue())
    const report = reportQueueChange(request, plan, changed)
    return { report, lines: describeQueueChange(config, request, plan, report) }
  }
  const lock = await waitForTickLock(parts)
  try {
    return await changeUnderLock(parts, request, key)
  } finally {
    lock.close()
  }
}

/** The adapters of `openQueue`, each call counted as an effect. */
function openCountedQueue(...request: Parameters<typeof openQueue>): QueueParts {
  const parts = openQueue(...request)
  return {
    ...parts,
    store: countEffects('store', parts.store, announceEffect),
    journals: countEffects('journals', parts.journals, announceEffect),
    claims: countEffects('claims', parts.claims, announceEffect),
  }
}

/** While this process holds the tick lock, no tick hands a claim over, so a held claim means a living runner. */
async function changeUnderLock(
  parts: QueueChangeParts,
  request: QueueChangeRequest,
  key: IssueKey,
): Promise<Readonly<{ report: QueueChange; lines: readonly string[] }>> {
  const before = planQueueChange(parts, request, key)
  const claim = parts.claims.take(key, before.last.runId ?? newRunId(parts))
  if (claim === null) throw aliveFault(before)
  try {
    // Planned again: a runner may have ended between the first plan and the claim.
    const plan = planQueueChange(parts, request, key)
    for (const line of warningsOf(parts, plan)) parts.note(line)
    killOrphans(plan)
    const changed = await parts.store.changeQueue((queue) => {
      const value = requeueEntry(parts, request, plan, queue)
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

/** The name for the claim of an entry that never had a run; no journal ever gets this name. */
function newRunId({ clock }: QueueChangeParts): string {
  return makeRunId(clock.now(), randomBytes(10))
}

function aliveFault({ entry, last }: QueueChangePlan): Fault {
  const pid = last.journal?.runner?.pid
  const run = `${last.runId ?? 'unknown'}${pid === undefined ? '' : ` (process ${pid})`}`
  return fault('queue/run-alive', { issue: formatIssue(entry.key), run })
}
