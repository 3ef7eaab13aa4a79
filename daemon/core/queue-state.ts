import type { IssueKey } from './issue-key.ts'
import type { Ticket } from './labels.ts'
import type { Timestamp } from './timestamp.ts'

/**
 * The phases of an issue's life. `slot`: the phase counts against `worker_parallelism`. `terminal`: nothing
 * happens by itself any more.
 */
export const PHASES = {
  awaiting_review: { slot: false, terminal: false, meaning: 'a pull request waits for a human' },
  done: { slot: false, terminal: true, meaning: 'merged, or findings posted' },
  failed: { slot: false, terminal: true, meaning: 'the retry budget is spent' },
  in_progress: { slot: true, terminal: false, meaning: 'a run holds it' },
  needs_attention: { slot: false, terminal: true, meaning: 'a human has to decide' },
  previewed: { slot: false, terminal: false, meaning: 'a dry run wrote its report' },
  queued: { slot: false, terminal: false, meaning: 'waits for a run' },
  skipped: { slot: false, terminal: true, meaning: 'withdrawn before it was done' },
} as const satisfies Record<string, { slot: boolean; terminal: boolean; meaning: string }>

export type Phase = keyof typeof PHASES

/** A fault as it is stored, with the time at which it happened. */
export type RecordedError = Readonly<{ code: string; message: string; at: Timestamp }>

/** Why an entry needs a human, and the next step. */
export type Blocked = Readonly<{ source: string; hint: string }>

/** One issue in the queue. Stored in this shape, as JSON. */
export type QueueEntry = Readonly<{
  key: IssueKey
  phase: Phase
  ticket: Ticket
  /** Worker attempts used up in this generation. */
  attempts: number
  /** Infrastructure failures in a row, and since when; null after a success. */
  degraded: Readonly<{ count: number; since: Timestamp }> | null
  /** How often a run of this generation was cut off from outside. */
  interruptions: number
  /** Raised when the issue is labelled again after its end; says which labelling a run answers. */
  generation: number
  /** Id of the `labeled` event that began this generation; null = not looked up yet. */
  labeledEventId: number | null
  /** The issue's `updated_at` at the last poll; an unchanged issue needs no request. */
  seenUpdatedAt: Timestamp | null
  /** The run that holds the entry while in_progress, else null. */
  runId: string | null
  lastRunId: string | null
  /** A run whose worker has succeeded and whose publication goes on instead of a new run (`queue reset`). */
  resume: string | null
  pull: Readonly<{ number: number; url: string }> | null
  nextAttemptAt: Timestamp | null
  lastError: RecordedError | null
  blocked: Blocked | null
  queuedAt: Timestamp
  updatedAt: Timestamp
}>

/** Failures in a row of one scope of `core/circuits.ts`; a success removes the record. */
export type Circuit = Readonly<{
  failures: number
  /** No new run starts before this. */
  until: Timestamp
  lastError: RecordedError
}>

export type Circuits = Readonly<Record<string, Circuit>>

/** Entries by `issueId(key)`, and circuits by `circuitId`. */
export type QueueState = Readonly<{
  entries: Readonly<Record<string, QueueEntry>>
  circuits: Circuits
}>

export const EMPTY_QUEUE: QueueState = { entries: {}, circuits: {} }

export function newEntry(
  key: IssueKey,
  ticket: Ticket,
  now: Timestamp,
  seenUpdatedAt: Timestamp,
): QueueEntry {
  return {
    key,
    phase: 'queued',
    ticket,
    attempts: 0,
    degraded: null,
    interruptions: 0,
    generation: 1,
    labeledEventId: null,
    seenUpdatedAt,
    runId: null,
    lastRunId: null,
    resume: null,
    pull: null,
    nextAttemptAt: null,
    lastError: null,
    blocked: null,
    queuedAt: now,
    updatedAt: now,
  }
}

/** The queue with one entry put in. */
export function withEntry(queue: QueueState, id: string, entry: QueueEntry): QueueState {
  return { ...queue, entries: { ...queue.entries, [id]: entry } }
}
