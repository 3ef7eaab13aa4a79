import type { Clock } from '../core/ports.ts'
import { onAbort } from './bounded-waits.ts'

/** Longest time a sleeper goes without reading the clock again. */
const SLICE_MS = 1000

/**
 * The machine's clock. `now` reads `Date.now` at call time. `sleep` ends when the wall clock has
 * reached its target or when the time has really passed, whichever is first: a clock set forward
 * wakes it within a second, a clock set back cannot prolong it.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    const target = Date.now() + ms
    const end = performance.now() + ms
    for (;;) {
      const remaining = Math.min(target - Date.now(), end - performance.now())
      if (remaining <= 0 || signal?.aborted === true) return
      await pause(Math.min(remaining, SLICE_MS), signal)
    }
  },
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    const stopListening = onAbort(signal, done)
    function done(): void {
      clearTimeout(timer)
      stopListening()
      resolve()
    }
  })
}
