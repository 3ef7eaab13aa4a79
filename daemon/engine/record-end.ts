import { afterRunEnd } from '../core/circuit-changes.ts'
import { describeFault, fault } from '../core/fault.ts'
import { formatIssue, issueId } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { nextStepOf } from '../core/resume.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue, type EventName, type PhaseEvent } from '../core/transitions.ts'
import type { RunPorts } from './run-ports.ts'
import { next, type StageResult } from './stage-result.ts'

/**
 * Outcomes after which the tree has served its purpose. All others keep it: it is the work of a worker
 * that failed, or that a human has to look at (design §7).
 */
const TREE_NO_LONGER_NEEDED: ReadonlySet<EventName> = new Set([
  'published',
  'findings-posted',
  'rate-limited',
])

/** What telling an end needs; a tick has it too. */
type EndPorts = Pick<RunPorts, 'store' | 'clock' | 'log'> &
  Readonly<{ settings: Pick<RunPorts['settings'], 'retry' | 'circuits'> }>

/**
 * Tells the queue how the run ended, then cleans up. The queue comes first: if we die in between, the
 * next tick finds the outcome in the journal and tells it again, which changes nothing.
 * Faults: state/*, sys/io of the journal.
 */
export async function recordEnd(ports: RunPorts, journal: Journal): Promise<StageResult> {
  const { outcome } = journal
  if (outcome === null) throw fault('internal/unexpected', { reason: 'the journal has no outcome' })
  await applyEnd(ports, journal, outcome)
  // A withdrawn issue's tree goes too, unless a worker had succeeded in it.
  const isUnused = outcome.on === 'withdrawn' && journal.endedIn !== 'publishing'
  if (TREE_NO_LONGER_NEEDED.has(outcome.on) || isUnused) await removeTree(ports, journal)
  const settled: Journal = { ...journal, stage: 'settled' }
  ports.journals.write(settled)
  return next(settled)
}

/** The entry as the end of its run leaves it; null = it was told before, or the entry has moved on. */
export async function applyEnd(
  ports: EndPorts,
  journal: Journal,
  outcome: PhaseEvent,
): Promise<QueueEntry | null> {
  const { retry, circuits } = ports.settings
  const id = issueId(journal.key)
  const event = {
    ...outcome,
    ...(journal.labeledEventId === null ? {} : { labeledEventId: journal.labeledEventId }),
  }
  const entry = await ports.store.changeQueue<QueueEntry | null>((queue) => {
    // Dated when the queue learns of it, so that what came after a telling is never taken for older.
    const now = ports.clock.now()
    const settled = applyToQueue(queue, id, { ...event, at: toTimestamp(now) }, retry)
    if (settled.entry === null) return { state: queue, value: null }
    const after = afterRunEnd(queue.circuits, journal.key, event, now, circuits)
    return { state: { ...settled.queue, circuits: after }, value: settled.entry }
  })
  ports.log.info('run settled', {
    issue: formatIssue(journal.key),
    runId: journal.runId,
    event: event.on,
    phase: entry?.phase ?? null,
    error: event.error?.message,
    recovery_hint: entry === null ? undefined : nextStepOf(entry) || undefined,
  })
  return entry
}

/** What cannot be removed now is collected later; it must not keep a run from its end. */
async function removeTree({ git, log }: RunPorts, journal: Journal): Promise<void> {
  try {
    await git.removeTree({ path: journal.treePath, indexPath: journal.indexPath })
  } catch (thrown) {
    log.warn('tree not removed', { runId: journal.runId, error: describeFault(thrown) })
  }
}
