import { LIMITS } from './limits.ts'

/**
 * How long to wait before the next attempt: the base, doubled for each earlier failure, at most one hour, and
 * shortened at random by up to a quarter, so that many entries do not become due together.
 * @param baseSeconds `retry_backoff_seconds`
 * @param failures failures so far, at least 1: the present one counts
 * @param jitter a random number in [0, 1)
 * @returns milliseconds
 */
export function backoffMs(baseSeconds: number, failures: number, jitter: number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 20)
  const full = Math.min(baseSeconds * 1000 * 2 ** doublings, LIMITS.backoffCapMs)
  return Math.round(full * (1 - jitter / 4))
}
