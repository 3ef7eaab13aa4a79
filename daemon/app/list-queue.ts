import type { Phase } from '../core/queue-state.ts'
import { inspectQueue } from './inspect-queue.ts'
import { type ShownEntry, showEntry } from './show-entry.ts'

export type QueueList = Readonly<{ phase: Phase | null; entries: readonly ShownEntry[] }>

/** Entries that need a human come first, then those that proceed by themselves, then those at rest. */
const ORDER = [
  'needs_attention',
  'failed',
  'in_progress',
  'queued',
  'awaiting_review',
  'previewed',
  'skipped',
  'done',
] as const satisfies readonly Phase[]

/** `queue list`. Reads, and changes nothing. Faults: config/*, state/*. */
export function listQueue(phase: Phase | null): QueueList {
  const facts = inspectQueue()
  const shown = Object.values(facts.queue.entries)
    .filter((entry) => phase === null || entry.phase === phase)
    .map((entry) => showEntry(facts, entry))
  return { phase, entries: shown.toSorted(compareShown) }
}

/** Queued entries stand in the order in which they start, the others by their last change, newest first. */
function compareShown(a: ShownEntry, b: ShownEntry): number {
  const ranks = ORDER.indexOf(a.phase) - ORDER.indexOf(b.phase)
  if (ranks !== 0) return ranks
  const dated =
    a.phase === 'queued'
      ? compare(a.next_attempt?.until ?? '', b.next_attempt?.until ?? '') ||
        compare(a.queued_at, b.queued_at)
      : compare(b.updated_at, a.updated_at)
  return dated || compare(a.issue.toLowerCase(), b.issue.toLowerCase())
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
