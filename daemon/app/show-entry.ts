import { heldBackUntil } from '../core/circuits.ts'
import { LONGEST_WAIT_MS } from '../core/eligible-entries.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Phase, QueueEntry } from '../core/queue-state.ts'
import { nextStepOf } from '../core/resume.ts'
import { plausibleWait, toTimestamp } from '../core/timestamp.ts'
import type { QueueFacts } from './inspect-queue.ts'

/** What keeps a queued entry from starting now. */
type Wait = Readonly<{ until: string; why: 'backoff' | 'limit' | 'circuit' }>

/** The shape in which `list` and `show` give an entry with `--json`. */
export type ShownEntry = Readonly<{
  issue: string
  phase: Phase
  ticket: string
  generation: number
  attempts: number
  interruptions: number
  degraded: QueueEntry['degraded']
  queued_at: string
  updated_at: string
  /** When a queued entry may start; null = as soon as there is capacity. */
  next_attempt: Wait | null
  pull: QueueEntry['pull']
  last_error: QueueEntry['lastError']
  blocked_source: string | null
  /** Ends with the exact command to type; empty when nothing has to be done by hand. */
  next_step: string
  /** The run whose publication goes on instead of a new run. */
  resume_run: string | null
}>

/** The entry as people and programs are shown it. */
export function showEntry(facts: QueueFacts, entry: QueueEntry): ShownEntry {
  return {
    issue: formatIssue(entry.key),
    phase: entry.phase,
    ticket: entry.ticket,
    generation: entry.generation,
    attempts: entry.attempts,
    interruptions: entry.interruptions,
    degraded: entry.degraded,
    queued_at: entry.queuedAt,
    updated_at: entry.updatedAt,
    next_attempt: entry.phase === 'queued' ? waitOf(facts, entry) : null,
    pull: entry.pull,
    last_error: entry.lastError,
    blocked_source: entry.blocked?.source ?? null,
    next_step: nextStepOf(entry),
    resume_run: entry.resume,
  }
}

/** The longest wait of an entry, by the rules of dispatch; null = it may start now. */
function waitOf(facts: QueueFacts, entry: QueueEntry): Wait | null {
  const { queue, atWork, now, limitedUntil, policy } = facts
  const own = plausibleWait(entry.nextAttemptAt, now, LONGEST_WAIT_MS)
  const isLimit = entry.lastError?.code === 'github/rate-limited'
  const waits = [
    { at: own !== null && own > now ? own : null, why: isLimit ? 'limit' : 'backoff' },
    { at: limitedUntil, why: 'limit' },
    { at: heldBackUntil(queue.circuits, atWork, entry.key, now, policy), why: 'circuit' },
  ] as const
  const [longest] = waits
    .flatMap(({ at, why }) => (at === null ? [] : [{ at, why }]))
    .sort((a, b) => b.at - a.at)
  return longest === undefined ? null : { until: toTimestamp(longest.at), why: longest.why }
}
