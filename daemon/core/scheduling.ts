import { type CircuitPolicy, heldBackUntil } from './circuits.ts'
import { issueId, repositoryId, repositoryOf } from './issue-key.ts'
import { LIMITS } from './limits.ts'
import type { Meta } from './meta.ts'
import { PHASES, type QueueEntry, type QueueState } from './queue-state.ts'
import { fromTimestamp, plausibleWait, toTimestamp } from './timestamp.ts'

/** What a tick may do now. */
export type Gate = Readonly<{
  /** Until when GitHub must not be asked, by anybody. */
  limitedUntil: number | null
  /** Whether it is time to poll. */
  pollIsDue: boolean
  /** The earliest next poll. */
  nextPollAt: number
}>

/**
 * Cadence counts from the last poll's start, with a tenth of slack, so that cron's own jitter does not
 * skip every other tick; a stored time in the future (the clock was set back) never blocks (design §6).
 * @param forced `run --now`: the cadence is passed over, a rate limit is not
 */
export function evaluateGate(
  meta: Meta,
  now: number,
  pollIntervalMs: number,
  forced: boolean,
): Gate {
  const waitUntil = plausibleWait(meta.wait?.until ?? null, now, LIMITS.rateLimitCapMs)
  const limitedUntil = waitUntil !== null && waitUntil > now ? waitUntil : null
  const last = meta.lastPollStarted === null ? null : fromTimestamp(meta.lastPollStarted)
  const nextByCadence = last === null || last > now ? now : last + pollIntervalMs * 0.9
  return {
    limitedUntil,
    pollIsDue: limitedUntil === null && (forced || nextByCadence <= now),
    nextPollAt: Math.max(limitedUntil ?? now, nextByCadence),
  }
}

/** Host-wide bounds on what may run at once (design §5). */
export type Capacity = Readonly<{
  /** `worker_parallelism`. */
  parallelism: number
  /** `max_runs_per_repo`; 0 = no limit. */
  perRepository: number
}>

/** The longest wait that can rightly be stored; more comes from a clock that jumped (design §5). */
export const LONGEST_WAIT_MS = Math.max(LIMITS.backoffCapMs, LIMITS.rateLimitCapMs)

/** Entries that may be claimed now, in the order they will be: first queued, first served. */
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
    // Work that is paid for is never held back.
    const isNew = entry.resume === null
    if (isNew && heldBackUntil(queue.circuits, atWork, entry.key, now, policy) !== null) continue
    chosen.push(entry)
    count(perRepository, entry)
    atWork.push({ ...entry, phase: 'in_progress', updatedAt: toTimestamp(now) })
  }
  return chosen
}

/** The queued entry that comes next, due or not, and when the first one is due. */
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

/**
 * How long to wait before the next try: the base doubled per earlier failure, jittered down by up to
 * a quarter so that many entries do not come due together, capped at one hour (design §6).
 * @param baseSeconds `retry_backoff_seconds`
 * @param failures failures so far, the present one included (≥ 1)
 * @param jitter a random number in [0, 1)
 * @returns milliseconds
 */
export function backoffMs(baseSeconds: number, failures: number, jitter: number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 20)
  const full = Math.min(baseSeconds * 1000 * 2 ** doublings, LIMITS.backoffCapMs)
  return Math.round(full * (1 - jitter / 4))
}
