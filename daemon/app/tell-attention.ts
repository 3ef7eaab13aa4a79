import { formatIssue, issueId } from '../core/issue-key.ts'
import type { Store } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue.ts'
import { nextStepOf } from '../core/resume.ts'
import type { StateLayout } from '../state/layout.ts'

/**
 * One line for every issue that has come to need attention since the last call; each is told once
 * (design §11), whatever the clock does meanwhile. Faults: state/*.
 */
export async function tellAttention(store: Store, layout: StateLayout): Promise<readonly string[]> {
  const { attentionTold } = store.readMeta()
  const inNeed = Object.values(store.readQueue().entries).filter(
    ({ phase }) => phase === 'needs_attention' || phase === 'failed',
  )
  const fresh = inNeed.filter(({ key, updatedAt }) => attentionTold[issueId(key)] !== updatedAt)
  const isOver = Object.keys(attentionTold).length > inNeed.length - fresh.length
  if (fresh.length === 0 && !isOver) return []
  await store.changeMeta((meta) => ({
    state: {
      ...meta,
      attentionTold: Object.fromEntries(
        inNeed.map(({ key, updatedAt }) => [issueId(key), updatedAt]),
      ),
    },
    value: undefined,
  }))
  return fresh.map(
    (entry) => `${formatIssue(entry.key)} needs attention: ${describe(entry, layout)}`,
  )
}

/** What happened, and what to do next: a spent budget has no hint of its own, there it is the output. */
function describe(entry: QueueEntry, layout: StateLayout): string {
  const { phase, lastError, lastRunId } = entry
  const message = lastError?.message ?? 'unknown'
  const output =
    phase !== 'failed' || lastRunId === null
      ? ''
      : ` Its output is in ${layout.run(lastRunId).transcript}.`
  return `${message}${output} ${nextStepOf(entry)}`
}
