import { formatIssue } from '../core/issue-key.ts'
import type { Store } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import type { StateLayout } from '../state/layout.ts'

/**
 * One line for every issue that has come to need attention since the last call; each is told once
 * (design §11). Faults: state/*.
 */
export async function tellAttention(store: Store, layout: StateLayout): Promise<readonly string[]> {
  const toldAt = store.readMeta().attentionToldAt
  const since = toldAt === null ? 0 : fromTimestamp(toldAt)
  const fresh = Object.values(store.readQueue().entries).filter(
    ({ phase, updatedAt }) =>
      (phase === 'needs_attention' || phase === 'failed') && fromTimestamp(updatedAt) > since,
  )
  const newest = fresh
    .map(({ updatedAt }) => updatedAt)
    .sort()
    .at(-1)
  if (newest === undefined) return []
  await store.changeMeta((meta) => ({
    state: { ...meta, attentionToldAt: newest },
    value: undefined,
  }))
  return fresh.map((entry) =>
    `${formatIssue(entry.key)} needs attention: ${describe(entry, layout)}`.trim(),
  )
}

/** What happened, and what to do next: a spent budget has no hint of its own, there it is the output. */
function describe(
  { phase, lastError, blocked, lastRunId }: QueueEntry,
  layout: StateLayout,
): string {
  const message = lastError?.message ?? 'unknown'
  if (phase !== 'failed') return `${message} ${blocked?.hint ?? ''}`
  const output = lastRunId === null ? '' : ` Its output is in ${layout.run(lastRunId).transcript}.`
  return `${message}${output} Label it again to try once more.`
}
