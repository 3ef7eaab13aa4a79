import { afterRunEnd } from '../core/circuits.ts'
import { fault } from '../core/fault.ts'
import { formatIssue, issueId } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import type { QueueEntry } from '../core/queue.ts'
import { nextStepOf } from '../core/resume.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue, type EventName } from '../core/transitions.ts'
import type { RunPorts } from './run-ports.ts'

/**
 * Outcomes after which the tree has served its purpose. All others keep it: it is the work of a worker
 * that failed, or that a human has to look at (design §7).
 */
const TREE_NO_LONGER_NEEDED: ReadonlySet<EventName> = new Set([
  'published',
  'findings-posted',
  'rate-limited',
])

/**
 * Tells the queue how the run ended, then cleans up. The queue comes first: if we die in between, the
 * next tick finds the outcome in the journal and tells it again, which changes nothing.
 * Faults: state/*, sys/io.
 */
export async function settleRun(ports: RunPorts, journal: Journal): Promise<Journal> {
  const { outcome } = journal
  if (outcome === null) throw fault('internal/unexpected', { reason: 'the journal has no outcome' })
  const id = issueId(journal.key)
  const event = {
    ...outcome,
    ...(journal.labeledEventId === null ? {} : { labeledEventId: journal.labeledEventId }),
  }
  const entry = await ports.store.changeQueue<QueueEntry | null>((queue) => {
    const now = ports.clock.now()
    // Dated when the queue learns of it, so that what came after a telling is never taken for older.
    const at = toTimestamp(now)
    // Refused: it was told before, or the operator has moved the entry since.
    const settled = applyToQueue(queue, id, { ...event, at }, ports.settings.retry)
    if (settled.entry === null) return { state: queue, value: null }
    const circuits = afterRunEnd(queue.circuits, journal.key, event, now, ports.settings.circuits)
    return { state: { ...settled.queue, circuits }, value: settled.entry }
  })
  ports.log.info('run settled', {
    issue: formatIssue(journal.key),
    runId: journal.runId,
    event: event.on,
    phase: entry?.phase ?? null,
    error: event.error?.message,
    recovery_hint: entry === null ? undefined : nextStepOf(entry) || undefined,
  })
  // A withdrawn issue's tree goes too, unless a worker had succeeded in it.
  const isUnused = event.on === 'withdrawn' && journal.endedIn !== 'publishing'
  if (TREE_NO_LONGER_NEEDED.has(event.on) || isUnused) {
    await ports.git.removeTree({ path: journal.treePath, indexPath: journal.indexPath })
  }
  const settled: Journal = { ...journal, stage: 'settled' }
  ports.journals.write(settled)
  return settled
}
