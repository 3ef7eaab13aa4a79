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

/**
 * A stored waiting time, limited to what it can rightly be: a clock that jumped must neither
 * starve nor burst (design §5).
 * @param maxMs the longest wait that could have been stored at `now`
 */
export function clampWait(until: Timestamp | null, now: number, maxMs: number): number | null {
  if (until === null) return null
  return Math.min(fromTimestamp(until), now + maxMs)
}
