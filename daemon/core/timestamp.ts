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

/** Since when something lasts: a stored time ahead of now shows that the clock was set back, and counts anew. */
export function sinceWhen(stored: Timestamp | undefined, now: Timestamp): Timestamp {
  return stored !== undefined && stored <= now ? stored : now
}

/**
 * A stored waiting time in milliseconds since the epoch, or null when there is none or it cannot be
 * right: no wait is longer than `maxMs`, so one that seems to be shows that the clock was set back, and
 * going on finds the truth. A clock that jumped must not starve anything (design §5).
 */
export function plausibleWait(until: Timestamp | null, now: number, maxMs: number): number | null {
  if (until === null) return null
  const at = fromTimestamp(until)
  return at - now > maxMs ? null : at
}
