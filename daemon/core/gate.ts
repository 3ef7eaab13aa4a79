import { LIMITS } from './limits.ts'
import type { Meta } from './meta.ts'
import { fromTimestamp, plausibleWait } from './timestamp.ts'

/** What a tick may do now. */
export type Gate = Readonly<{
  /** Until when no process may ask GitHub, in milliseconds since the epoch; null = they may. */
  limitedUntil: number | null
  /** Whether it is time to poll. */
  pollIsDue: boolean
  /** The earliest next poll, in milliseconds since the epoch. */
  nextPollAt: number
}>

/**
 * Decides whether a tick may poll. The interval counts from the start of the last poll, with a tenth of slack,
 * so that cron's own jitter does not skip every second tick. A stored time in the future shows that the clock
 * was set back, and never blocks.
 * @param forced `run --now`: ignores the interval, but not a rate limit
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
