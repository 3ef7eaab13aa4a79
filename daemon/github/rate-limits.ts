import { LIMITS } from '../core/limits.ts'
import type { Meta, RateLimit } from '../core/meta.ts'
import type { Clock } from '../core/ports.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'

// GitHub docs, "Rate limits for the REST API" and "Best practices": wait for Retry-After; with nothing
// remaining wait for the reset; else at least a minute. Nothing here sleeps: a limit is told to the caller.

/** Until when no request may be made, by any process. */
export type Wait = NonNullable<Meta['wait']>

/** When an answer came: our clock and GitHub's, milliseconds since the epoch. */
type Moment = Readonly<{ now: number; serverTime: number }>

/**
 * The limit an answer tells of, or null.
 * @param reason GitHub's message in the body
 */
export function recogniseLimit(
  status: number,
  headers: Headers,
  reason: string,
  moment: Moment,
): Wait | null {
  if (status !== 403 && status !== 429) return null
  const retryAfterMs = readRetryAfter(headers.get('retry-after'), moment.serverTime)
  const isSecondary = /secondary rate limit|abuse detection/i.test(reason)
  const isSpent = headers.get('x-ratelimit-remaining') === '0'
  const isPrimary = isSpent || (!isSecondary && /rate limit exceeded/i.test(reason))
  if (status === 403 && retryAfterMs === null && !isSecondary && !isPrimary) return null

  const resetMs = isSpent ? readReset(headers.get('x-ratelimit-reset'), moment.serverTime) : null
  const asked = [retryAfterMs, resetMs].filter((ms) => ms !== null)
  const waitMs = asked.length === 0 ? LIMITS.secondaryLimitMs : Math.max(...asked, 1000)
  const kind = isSecondary ? 'secondary' : isPrimary ? 'primary' : 'retry-after'
  return { kind, until: toTimestamp(moment.now + Math.min(waitMs, LIMITS.rateLimitCapMs)) }
}

/** The rate headers, when all of them are there and well formed (R§5.2). */
export function observeRate(headers: Headers, now: number): RateLimit | null {
  const limit = readCount(headers.get('x-ratelimit-limit'))
  const remaining = readCount(headers.get('x-ratelimit-remaining'))
  const reset = readCount(headers.get('x-ratelimit-reset'))
  if (limit === null || remaining === null || reset === null) return null
  return {
    limit,
    remaining,
    resetAt: toTimestamp(reset * 1000),
    observedAt: toTimestamp(now),
  }
}

/** Milliseconds to wait; RFC 9110 §10.2.3 allows seconds or a date. */
function readRetryAfter(value: string | null, serverTime: number): number | null {
  if (value === null) return null
  const seconds = readCount(value)
  if (seconds !== null) return seconds * 1000
  const date = Date.parse(value)
  return Number.isNaN(date) ? null : Math.max(date - serverTime, 0)
}

/** Milliseconds to the reset by GitHub's clock, so ours may be wrong; a second more, as it is rounded. */
function readReset(value: string | null, serverTime: number): number | null {
  const seconds = readCount(value)
  return seconds === null ? null : Math.max(seconds * 1000 - serverTime, 0) + 1000
}

/** Eleven digits are enough for any real number here, and still a date. */
function readCount(value: string | null): number | null {
  return value !== null && /^\d{1,11}$/.test(value) ? Number(value) : null
}

export type GateDeps = Readonly<{
  clock: Clock
  /** The stored wait, read before every request: one gate for all processes (design §10). */
  gate: () => Wait | null
  /** A limit was met; to be stored before the fault is thrown. */
  onWait: (wait: Wait) => void | Promise<void>
}>

/** What holds requests back while GitHub wants us to wait. Nothing queues here: callers come again. */
type RequestGate = Readonly<{
  /** The wait in force, or null. */
  closedBy: () => Wait | null
  close: (wait: Wait) => Promise<void>
}>

export function openRequestGate(deps: GateDeps): RequestGate {
  // Kept here too: requests of this process stop at once, whatever becomes of the stored wait.
  let own: Wait | null = null
  return {
    closedBy: () => {
      const now = deps.clock.now()
      const waits = [own, deps.gate()].filter((wait) => wait !== null)
      return waits.filter((wait) => isInForce(wait, now)).reduce<Wait | null>(later, null)
    },
    close: async (wait) => {
      own = later(own, wait)
      try {
        await deps.onWait(wait)
      } catch {
        // The limit is the news, and it tells what became of a write; this process keeps to it anyway.
      }
    },
  }
}

/** A wait longer than any we store shows that the clock was set back: asking once more finds the truth. */
function isInForce(wait: Wait, now: number): boolean {
  const leftMs = fromTimestamp(wait.until) - now
  return leftMs > 0 && leftMs <= LIMITS.rateLimitCapMs
}

function later(a: Wait | null, b: Wait): Wait {
  return a === null || fromTimestamp(b.until) > fromTimestamp(a.until) ? b : a
}
