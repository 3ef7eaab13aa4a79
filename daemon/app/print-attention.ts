import { formatIssue, issueId } from '../core/issue-key.ts'
import type { Store } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { nextStepOf } from '../core/resume.ts'
import type { StateLayout } from '../state/layout.ts'

/**
 * Prints and returns one line for every issue that has come to need attention since the last call. Each is
 * printed once, even when the clock is set meanwhile. It is recorded as printed only afterwards, so a process
 * that dies in between makes the next tick print it again. Faults: state/*.
 */
export async function printAttention(
  store: Store,
  layout: StateLayout,
  print: (line: string) => void,
): Promise<readonly string[]> {
  const { attentionTold } = store.readMeta()
  const inNeed = Object.values(store.readQueue().entries).filter(
    ({ phase }) => phase === 'needs_attention' || phase === 'failed',
  )
  const fresh = inNeed.filter(({ key, updatedAt }) => attentionTold[issueId(key)] !== updatedAt)
  const isOver = Object.keys(attentionTold).length > inNeed.length - fresh.length
  if (fresh.length === 0 && !isOver) return []
  const lines = fresh.map(
    (entry) => `${formatIssue(entry.key)} needs attention: ${describe(entry, layout)}`,
  )
  for (const line of lines) print(line)
  await store.changeMeta((meta) => ({
    state: {
      ...meta,
      attentionTold: Object.fromEntries(
        inNeed.map(({ key, updatedAt }) => [issueId(key), updatedAt]),
      ),
    },
    value: undefined,
  }))
  return lines
}

/** What happened, and what to do next. For a spent budget that is to read the worker's output. */
function describe(entry: QueueEntry, layout: StateLayout): string {
  const { phase, lastError, lastRunId } = entry
  const message = lastError?.message ?? 'unknown'
  const output =
    phase !== 'failed' || lastRunId === null
      ? ''
      : ` Its output is in ${layout.run(lastRunId).transcript}.`
  return `${message}${output} ${nextStepOf(entry)}`
}
