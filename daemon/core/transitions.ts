import { backoffMs } from './backoff.ts'
import { LIMITS } from './limits.ts'
import {
  type Blocked,
  type Phase,
  type QueueEntry,
  type QueueState,
  type RecordedError,
  withEntry,
} from './queue-state.ts'
import { fromTimestamp, sinceWhen, type Timestamp, toTimestamp } from './timestamp.ts'

// The life of an entry. This table is the only place that knows which phase follows which
// (design §6, R§4.3 corrected); `applyEvent` is the only writer of `phase`.
//
// run: the event counts only from the run that holds the entry. when: a condition on the entry.
// attempts: what happens to the budget. generation: whether it begins a new one, which forgets what
// earlier runs left. wait: when it may be claimed again. error: what is remembered.

type TransitionRow = Readonly<{
  from: readonly Phase[]
  on: string
  when?: keyof typeof CONDITIONS
  to: Phase
  run: boolean
  attempts: 'keep' | '+1' | 'zero'
  generation: 'keep' | '+1'
  wait: 'none' | 'backoff' | 'given'
  error: 'keep' | 'set' | 'clear'
}>

// biome-ignore format: a table is read by its rows
export const TRANSITIONS = [
  { from: ['queued'], on: 'claimed', to: 'in_progress', run: false, attempts: 'keep', generation: 'keep', wait: 'none', error: 'keep' },
  { from: ['queued', 'previewed'], on: 'withdrawn', to: 'skipped', run: false, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'not-started', to: 'queued', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'keep' },
  { from: ['in_progress'], on: 'worker-failed', when: 'attempts-left', to: 'queued', run: true, attempts: '+1', generation: 'keep', wait: 'backoff', error: 'set' },
  { from: ['in_progress'], on: 'worker-failed', when: 'attempts-spent', to: 'failed', run: true, attempts: '+1', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'infrastructure-failed', when: 'not-degraded-too-long', to: 'queued', run: true, attempts: 'keep', generation: 'keep', wait: 'backoff', error: 'set' },
  { from: ['in_progress'], on: 'infrastructure-failed', when: 'degraded-too-long', to: 'needs_attention', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'rate-limited', to: 'queued', run: true, attempts: 'keep', generation: 'keep', wait: 'given', error: 'set' },
  { from: ['in_progress'], on: 'interrupted', when: 'interruptions-left', to: 'queued', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'interrupted', when: 'interruptions-spent', to: 'needs_attention', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'withdrawn', to: 'skipped', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'blocked', to: 'needs_attention', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['in_progress'], on: 'previewed', to: 'previewed', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'clear' },
  { from: ['in_progress'], on: 'published', to: 'awaiting_review', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'clear' },
  { from: ['in_progress'], on: 'findings-posted', to: 'done', run: true, attempts: 'keep', generation: 'keep', wait: 'none', error: 'clear' },
  { from: ['awaiting_review'], on: 'merged', to: 'done', run: false, attempts: 'keep', generation: 'keep', wait: 'none', error: 'clear' },
  { from: ['awaiting_review'], on: 'closed-unmerged', to: 'needs_attention', run: false, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['previewed'], on: 'dry-run-ended', to: 'queued', run: false, attempts: 'keep', generation: 'keep', wait: 'none', error: 'clear' },
  { from: ['awaiting_review'], on: 'pull-gone', to: 'needs_attention', run: false, attempts: 'keep', generation: 'keep', wait: 'none', error: 'set' },
  { from: ['done', 'failed', 'skipped', 'needs_attention'], on: 'relabelled', to: 'queued', run: false, attempts: 'zero', generation: '+1', wait: 'none', error: 'clear' },
  { from: ['failed', 'skipped', 'needs_attention'], on: 'reset', to: 'queued', run: false, attempts: 'zero', generation: 'keep', wait: 'none', error: 'clear' },
  { from: ['queued', 'in_progress', 'previewed', 'done', 'failed', 'skipped', 'needs_attention'], on: 'reprocessed', to: 'queued', run: false, attempts: 'zero', generation: '+1', wait: 'none', error: 'clear' },
] as const satisfies readonly TransitionRow[]

export type EventName = (typeof TRANSITIONS)[number]['on']

/** What happened to an entry. Only the fields its rows use are read. */
export type PhaseEvent = Readonly<{
  on: EventName
  at: Timestamp
  runId?: string
  error?: RecordedError
  blocked?: Blocked
  notBefore?: Timestamp
  pull?: Readonly<{ number: number; url: string }>
  labeledEventId?: number
  seenUpdatedAt?: Timestamp
  ticket?: QueueEntry['ticket']
  /** The run to go on with, see `QueueEntry.resume`. */
  resume?: string
  /** A random number in [0, 1) for the backoff. */
  jitter?: number
}>

/** The configured numbers the conditions look at. */
export type RetryPolicy = Readonly<{
  /** `max_retries_per_issue`: all worker attempts, the first included. */
  maxAttempts: number
  backoffSeconds: number
  /** `circuit_max_degraded_seconds`. */
  maxDegradedSeconds: number
}>

/** Whether failures around us, in a row, have gone on for so long that a human has to look. */
export function lastsTooLong(
  trouble: Readonly<{ count: number; since: Timestamp }>,
  { maxDegradedSeconds }: RetryPolicy,
  now: number,
): boolean {
  const isRepeated = trouble.count >= LIMITS.degradedTries
  return isRepeated && now - fromTimestamp(trouble.since) > maxDegradedSeconds * 1000
}

const attemptsLeft = (entry: QueueEntry, policy: RetryPolicy): boolean =>
  entry.attempts + 1 < policy.maxAttempts
const degradedTooLong = (entry: QueueEntry, policy: RetryPolicy, at: Timestamp): boolean =>
  entry.degraded !== null && lastsTooLong(entry.degraded, policy, fromTimestamp(at))
const interruptionsLeft = (entry: QueueEntry): boolean => entry.interruptions < LIMITS.interruptions

const CONDITIONS = {
  'attempts-left': attemptsLeft,
  'attempts-spent': (entry, policy) => !attemptsLeft(entry, policy),
  'degraded-too-long': degradedTooLong,
  'not-degraded-too-long': (entry, policy, at) => !degradedTooLong(entry, policy, at),
  'interruptions-left': interruptionsLeft,
  'interruptions-spent': (entry) => !interruptionsLeft(entry),
} as const satisfies Record<
  string,
  (entry: QueueEntry, policy: RetryPolicy, at: Timestamp) => boolean
>

export type Applied = Readonly<{ kind: 'applied'; entry: QueueEntry }>
export type Refused = Readonly<{ kind: 'refused'; reason: 'phase' | 'run' }>

/** The entry after an event, or why the event does not count. Pure. */
export function applyEvent(
  entry: QueueEntry,
  event: PhaseEvent,
  policy: RetryPolicy,
): Applied | Refused {
  const rows: readonly TransitionRow[] = TRANSITIONS
  const row = rows.find(
    (candidate) =>
      candidate.on === event.on &&
      candidate.from.includes(entry.phase) &&
      (candidate.when === undefined || CONDITIONS[candidate.when](entry, policy, event.at)),
  )
  if (row === undefined) return { kind: 'refused', reason: 'phase' }
  if (row.run && event.runId !== entry.runId) return { kind: 'refused', reason: 'run' }
  // An entry held by no run would accept no event ever after.
  const namesNoRun = row.to === 'in_progress' && event.runId === undefined
  if (namesNoRun) return { kind: 'refused', reason: 'run' }

  const startsOver = row.attempts === 'zero'
  const isNew = row.generation === '+1'
  const attempts = { keep: entry.attempts, '+1': entry.attempts + 1, zero: 0 }[row.attempts]
  const degraded = nextDegraded(entry, event, startsOver)
  const interruptions = startsOver
    ? 0
    : entry.interruptions + (event.on === 'interrupted' && row.to === 'queued' ? 1 : 0)
  const failures = Math.max(event.on === 'worker-failed' ? attempts : (degraded?.count ?? 1), 1)
  const backoff = backoffMs(policy.backoffSeconds, failures, event.jitter ?? 0)

  return {
    kind: 'applied',
    entry: {
      ...entry,
      phase: row.to,
      ticket: event.ticket ?? entry.ticket,
      attempts,
      degraded,
      interruptions,
      generation: isNew ? entry.generation + 1 : entry.generation,
      labeledEventId: event.labeledEventId ?? entry.labeledEventId,
      seenUpdatedAt: event.seenUpdatedAt ?? entry.seenUpdatedAt,
      runId: row.to === 'in_progress' ? (event.runId ?? null) : null,
      lastRunId: event.runId ?? entry.lastRunId,
      resume: nextResume(entry, event),
      pull: isNew ? null : (event.pull ?? entry.pull),
      nextAttemptAt: {
        none: null,
        given: event.notBefore ?? null,
        backoff: toTimestamp(fromTimestamp(event.at) + backoff),
      }[row.wait],
      lastError: { keep: entry.lastError, set: event.error ?? null, clear: null }[row.error],
      blocked: row.to === 'needs_attention' ? (event.blocked ?? null) : null,
      queuedAt: startsOver ? event.at : entry.queuedAt,
      updatedAt: event.at,
    },
  }
}

/**
 * The queue after an event of one of its entries. When the event does not count, or there is no such
 * entry, `entry` is null and the queue the same object, so that nothing is written.
 */
export function applyToQueue(
  queue: QueueState,
  id: string,
  event: PhaseEvent,
  policy: RetryPolicy,
): Readonly<{ queue: QueueState; entry: QueueEntry | null }> {
  const entry = queue.entries[id]
  const applied = entry && applyEvent(entry, event, policy)
  if (applied?.kind !== 'applied') return { queue, entry: null }
  return { queue: withEntry(queue, id, applied.entry), entry: applied.entry }
}

/** Kept until its run has been decided, so that a claim that came to nothing does not lose it. */
function nextResume(entry: QueueEntry, event: PhaseEvent): string | null {
  const keeps: readonly EventName[] = ['claimed', 'not-started']
  return event.resume ?? (keeps.includes(event.on) ? entry.resume : null)
}

/** Infrastructure failures in a row; any other end of a run shows that the surroundings work. */
function nextDegraded(
  entry: QueueEntry,
  event: PhaseEvent,
  startsOver: boolean,
): QueueEntry['degraded'] {
  if (event.on === 'infrastructure-failed') {
    return {
      count: (entry.degraded?.count ?? 0) + 1,
      since: sinceWhen(entry.degraded?.since, event.at),
    }
  }
  const unaffected: readonly EventName[] = ['claimed', 'not-started', 'rate-limited', 'interrupted']
  return startsOver || !unaffected.includes(event.on) ? null : entry.degraded
}
