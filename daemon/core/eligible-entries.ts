import { type CircuitPolicy, heldBackUntil } from './circuits.ts'
import { issueId, repositoryId, repositoryOf } from './issue-key.ts'
import { LIMITS } from './limits.ts'
import { PHASES, type QueueEntry, type QueueState } from './queue-state.ts'
import { plausibleWait, toTimestamp } from './timestamp.ts'

/** How many runs may be at work at once on this machine. */
export type Capacity = Readonly<{
  /** `worker_parallelism`. */
  parallelism: number
  /** `max_runs_per_repo`; 0 = no limit. */
  perRepository: number
}>

/** The longest wait that the program ever stores; a longer one shows that the clock jumped. */
export const LONGEST_WAIT_MS = Math.max(LIMITS.backoffCapMs, LIMITS.rateLimitCapMs)

/** Entries that may be claimed now, in the order of claiming: first queued, first claimed. */
export function eligibleEntries(
  queue: QueueState,
  now: number,
  capacity: Capacity,
  policy: CircuitPolicy,
): readonly QueueEntry[] {
  const entries = Object.values(queue.entries)
  const atWork = entries.filter((entry) => PHASES[entry.phase].slot)
  const perRepository = new Map<string, number>()
  for (const entry of atWork) count(perRepository, entry)

  const chosen: QueueEntry[] = []
  for (const entry of inOrder(entries)) {
    if (atWork.length >= capacity.parallelism) break
    if (dueAt(entry, now) > now) continue
    const used = perRepository.get(repositoryId(repositoryOf(entry.key))) ?? 0
    if (capacity.perRepository > 0 && used >= capacity.perRepository) continue
    // Circuits hold back new work only: a run whose worker has succeeded goes on.
    const isNew = entry.resume === null
    if (isNew && heldBackUntil(queue.circuits, atWork, entry.key, now, policy) !== null) continue
    chosen.push(entry)
    count(perRepository, entry)
    atWork.push({ ...entry, phase: 'in_progress', updatedAt: toTimestamp(now) })
  }
  return chosen
}

/**
 * The queued entry that may start now. When none may, `head` is null and `earliest` is when the first one may,
 * in milliseconds since the epoch; null = nothing is queued.
 */
export function nextHead(
  queue: QueueState,
  now: number,
  policy: CircuitPolicy,
): Readonly<{ head: QueueEntry | null; earliest: number | null }> {
  const entries = Object.values(queue.entries)
  const atWork = entries.filter((entry) => PHASES[entry.phase].slot)
  const waits = inOrder(entries).map((entry) => ({
    entry,
    heldBack: heldBackUntil(queue.circuits, atWork, entry.key, now, policy),
    at: dueAt(entry, now),
  }))
  const next = waits.find(({ at, heldBack }) => at <= now && heldBack === null)
  if (next !== undefined || waits.length === 0) {
    return { head: next?.entry ?? null, earliest: null }
  }
  return { head: null, earliest: Math.min(...waits.map((w) => Math.max(w.at, w.heldBack ?? now))) }
}

function dueAt(entry: QueueEntry, now: number): number {
  return plausibleWait(entry.nextAttemptAt, now, LONGEST_WAIT_MS) ?? now
}

function inOrder(entries: readonly QueueEntry[]): readonly QueueEntry[] {
  return entries
    .filter((entry) => entry.phase === 'queued')
    .sort((a, b) => compare(a.queuedAt, b.queuedAt) || compare(issueId(a.key), issueId(b.key)))
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function count(counts: Map<string, number>, entry: QueueEntry): void {
  const id = repositoryId(repositoryOf(entry.key))
  counts.set(id, (counts.get(id) ?? 0) + 1)
}
