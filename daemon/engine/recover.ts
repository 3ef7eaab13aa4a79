import { formatIssue, issueId } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim } from '../core/ports.ts'
import { type QueueEntry, withEntry } from '../core/queue.ts'
import { plausibleWait, toTimestamp } from '../core/timestamp.ts'
import { applyEvent } from '../core/transitions.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

export type RecoveryReport = Readonly<{
  adopted: readonly string[]
  problems: readonly TickProblem[]
}>

/**
 * Looks at every entry in progress: a held claim means that its run is alive. A free one means that the
 * run ended before its outcome reached the queue; it is taken over where its journal says it stands
 * (P§1, P§2). There is no third case.
 */
export async function recover(ports: TickPorts): Promise<RecoveryReport> {
  const adopted: string[] = []
  const problems: TickProblem[] = []
  for (const entry of Object.values(ports.store.readQueue().entries)) {
    if (entry.phase !== 'in_progress' || entry.runId === null) continue
    if (ports.clock.now() >= ports.deadlineAt) break
    try {
      if (await adopt(ports, entry, entry.runId)) adopted.push(entry.runId)
    } catch (thrown) {
      problems.push({ where: formatIssue(entry.key), thrown }) // its claim is free again: next tick
    }
  }
  return { adopted, problems }
}

async function adopt(ports: TickPorts, entry: QueueEntry, runId: string): Promise<boolean> {
  if (!isDue(ports, ports.journals.read(runId))) return false
  const claim = ports.claims.take(entry.key, runId)
  if (claim === null) return false
  try {
    // Read again under the claim: a runner may have ended between the look and the lock.
    const journal = ports.journals.read(runId)
    if (journal === null || journal.stage === 'starting') {
      await requeue(ports, entry, runId)
      claim.release()
      return false
    }
    if (!isDue(ports, journal)) return false
    await takeOver(ports, claim, journal)
    return true
  } finally {
    claim.close()
  }
}

function isDue(ports: TickPorts, journal: Journal | null): boolean {
  const now = ports.clock.now()
  const until = plausibleWait(journal?.notBefore ?? null, now, LIMITS.rateLimitCapMs)
  return until === null || until <= now
}

/** Nothing was begun, so nothing is counted. */
async function requeue(ports: TickPorts, { key }: QueueEntry, runId: string): Promise<void> {
  const id = issueId(key)
  const event = { on: 'not-started', at: toTimestamp(ports.clock.now()), runId } as const
  await ports.store.changeQueue((queue) => {
    const entry = queue.entries[id]
    const applied = entry && applyEvent(entry, event, ports.settings.retry)
    return applied?.kind === 'applied'
      ? { state: withEntry(queue, id, applied.entry), value: undefined }
      : { state: queue, value: undefined }
  })
  ports.log.info('run never started', { issue: id, runId })
}

/** Ends what the dead runner left acting before anybody else acts for the run (P§1). */
async function takeOver(ports: TickPorts, claim: Claim, journal: Journal): Promise<void> {
  if (journal.runner !== null) ports.endLeftovers(journal.runner)
  ports.journals.write({ ...journal, epoch: journal.epoch + 1, runner: null })
  await ports.startRunner(claim, journal.runId)
  ports.log.info('run adopted', {
    issue: formatIssue(journal.key),
    runId: journal.runId,
    stage: journal.stage,
  })
}
