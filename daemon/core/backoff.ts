import { LIMITS } from './limits.ts'

/**
 * How long to wait before the next try: the base doubled per earlier failure, jittered down by up to
 * a quarter so that many entries do not come due together, capped at one hour (design §6).
 * @param baseSeconds `retry_backoff_seconds`
 * @param failures failures so far, the present one included (≥ 1)
 * @param jitter a random number in [0, 1)
 * @returns milliseconds
 */
export function backoffMs(baseSeconds: number, failures: number, jitter: number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), 20)
  const full = Math.min(baseSeconds * 1000 * 2 ** doublings, LIMITS.backoffCapMs)
  return Math.round(full * (1 - jitter / 4))
}
