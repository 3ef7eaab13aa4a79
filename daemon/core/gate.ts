import { LIMITS } from './limits.ts'
import type { Meta } from './meta.ts'
import { fromTimestamp, plausibleWait } from './timestamp.ts'

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
