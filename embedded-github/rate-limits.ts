// GitHub's primary rate limit: so many requests per account and hour, 304 answers not counted
// (GitHub docs, "Rate limits for the REST API"). Held in memory: a restarted server starts a new hour.

import { seconds } from './times.ts'

/** By account id; 0 = requests without a token. */
export type RateLimits = Map<number, RateWindow>

type RateWindow = { limit: number; used: number; resetAt: number }

const WINDOW_MS = 3_600_000
const LIMIT_WITH_TOKEN = 5000
const LIMIT_WITHOUT_TOKEN = 60

/** The running window of an account; a new one when the last has ended. */
export function windowOf(limits: RateLimits, accountId: number | null, now: number): RateWindow {
  const key = accountId ?? 0
  const known = limits.get(key)
  if (known !== undefined && now < known.resetAt) return known
  const limit = known?.limit ?? (accountId === null ? LIMIT_WITHOUT_TOKEN : LIMIT_WITH_TOKEN)
  const fresh = { limit, used: 0, resetAt: now + WINDOW_MS }
  limits.set(key, fresh)
  return fresh
}

export function isExhausted(window: RateWindow): boolean {
  return window.used >= window.limit
}

export function countRequest(window: RateWindow): void {
  window.used = Math.min(window.limit, window.used + 1)
}

/** As `/rate_limit` shows it. */
export function describeWindow(window: RateWindow) {
  return {
    limit: window.limit,
    used: window.used,
    remaining: Math.max(0, window.limit - window.used),
    reset: seconds(window.resetAt),
  }
}

export function rateHeaders(window: RateWindow): Readonly<Record<string, string>> {
  const shown = describeWindow(window)
  return {
    'X-RateLimit-Limit': String(shown.limit),
    'X-RateLimit-Remaining': String(shown.remaining),
    'X-RateLimit-Reset': String(shown.reset),
    'X-RateLimit-Used': String(shown.used),
    'X-RateLimit-Resource': 'core',
  }
}
