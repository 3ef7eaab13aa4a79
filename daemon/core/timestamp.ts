/** RFC 3339 in UTC with milliseconds, as every stored file has it. */
export type Timestamp = string

/** @param ms milliseconds since the epoch */
export function toTimestamp(ms: number): Timestamp {
  return new Date(ms).toISOString()
}

/** Milliseconds since the epoch. Stored times were validated when they were read. */
export function fromTimestamp(timestamp: Timestamp): number {
  return Date.parse(timestamp)
}

/** Since when something lasts. A stored time ahead of now shows that the clock was set back, and counts as now. */
export function sinceWhen(stored: Timestamp | undefined, now: Timestamp): Timestamp {
  return stored !== undefined && stored <= now ? stored : now
}

/**
 * A stored end of a wait, in milliseconds since the epoch; null = there is none, or it is impossible: no wait is
 * longer than `maxMs`, so a longer one shows that the clock was set back. A clock that jumped must not delay
 * anything for ever.
 */
export function plausibleWait(until: Timestamp | null, now: number, maxMs: number): number | null {
  if (until === null) return null
  const at = fromTimestamp(until)
  return at - now > maxMs ? null : at
}
