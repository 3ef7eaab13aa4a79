import { closeCircuits } from '../core/circuit-changes.ts'
import { fault } from '../core/fault.ts'
import { formatIssue, issueId } from '../core/issue-key.ts'
import type { QueueEntry, QueueState } from '../core/queue-state.ts'
import { QUEUE_VERBS } from '../core/queue-verbs.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue } from '../core/transitions.ts'
import type { QueueChangeParts } from './end-last-run.ts'
import type { QueueChangePlan, QueueChangeRequest } from './report-queue-change.ts'
import { tickSettingsOf } from './settings-of.ts'

type Requeued = Readonly<{ queue: QueueState; entry: QueueEntry; closed: readonly string[] }>

/** The queue with the entry queued again and its circuits closed. Faults: queue/refused. */
export function requeueEntry(
  { clock, config }: QueueChangeParts,
  { verb }: QueueChangeRequest,
  { entry: { key, phase }, fate }: QueueChangePlan,
  queue: QueueState,
): Requeued {
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
