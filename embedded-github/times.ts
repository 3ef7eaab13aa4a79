// GitHub's times have no fractions of a second: what happened within one second cannot be told apart.

/** `2024-05-06T07:08:09Z`. @param ms milliseconds since the epoch */
export function isoSecond(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

export function isoSecondOrNull(ms: number | null): string | null {
  return ms === null ? null : isoSecond(ms)
}

/** Whole seconds since the epoch. */
export function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}

/** Of a `since` parameter: whole seconds, or null when it is no time. */
export function parseSince(text: string): number | null {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : seconds(ms)
}
