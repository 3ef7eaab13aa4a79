import { asFault, type Fault, isFault, isFaultOf } from '../core/fault.ts'
import { policyOf } from '../core/fault-catalogue.ts'
import { LIMITS } from '../core/limits.ts'
import type { RecordedError } from '../core/queue-state.ts'
import { toTimestamp } from '../core/timestamp.ts'
import type { PhaseEvent } from '../core/transitions.ts'

/** A fault as it is remembered in the queue and in the metadata. */
export function recordError(thrown: unknown, now: number): RecordedError {
  const known = asFault(thrown)
  return { code: known.code, message: known.message, at: toTimestamp(now) }
}

/** Told as a limit with its end, in one place for all; not as an error of whatever met it. */
export function isRateLimit(thrown: unknown): boolean {
  return isFault(thrown) && thrown.code === 'github/rate-limited'
}

/** With such a token every run would fail at its first request. */
export function isRejectedToken(thrown: unknown): boolean {
  return isFault(thrown) && thrown.code === 'token/rejected'
}

/** The event that ends a run which met a fault. */
export function eventOfFault(
  thrown: unknown,
  run: Readonly<{ runId: string; now: number; jitter: number }>,
): PhaseEvent {
  const known = asFault(thrown)
  const until = waitOf(known, run.now)
  return {
    on: policyOf(known.code).event,
    at: toTimestamp(run.now),
    runId: run.runId,
    error: recordError(known, run.now),
    blocked: { source: known.code, hint: known.next },
    jitter: run.jitter,
    ...(until === null ? {} : { notBefore: toTimestamp(until) }),
  }
}

/** The time until which a fault itself asks to wait, limited so that no clock can make us wait for ever; null = none. */
export function waitOf(known: Fault, now: number): number | null {
  const at = timeNamedBy(known)
  if (at === null || Number.isNaN(at)) return null
  return Math.min(Math.max(at, now), now + LIMITS.rateLimitCapMs)
}

function timeNamedBy(known: Fault): number | null {
  if (isFaultOf(known, 'github/rate-limited')) return known.details.untilMs
  return isFaultOf(known, 'publish/pending') ? Date.parse(String(known.details.until)) : null
}
