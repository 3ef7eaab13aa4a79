import { formatIssue } from '../core/issue-key.ts'
import type { Store } from '../core/ports.ts'
import { fromTimestamp } from '../core/timestamp.ts'

/**
 * One line for every issue that has come to need attention since the last call; each is told once
 * (design §11). Faults: state/*.
 */
export async function tellAttention(store: Store): Promise<readonly string[]> {
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
  return fresh.map(({ key, lastError, blocked }) =>
    `${formatIssue(key)} needs attention: ${lastError?.message ?? 'unknown'} ${blocked?.hint ?? ''}`.trim(),
  )
}
