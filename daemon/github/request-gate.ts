import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import type { Wait } from './rate-limits.ts'

export type GateDeps = Readonly<{
  clock: Clock
  /** The stored wait, read before every request: one gate for all processes (design §10). */
  gate: () => Wait | null
  /** A limit was met; to be stored before the fault is thrown. */
  onWait: (wait: Wait) => void | Promise<void>
}>

/** What holds requests back while GitHub wants us to wait. Nothing queues here: callers come again. */
export type RequestGate = Readonly<{
  /** The wait in force, or null. */
  closedBy: () => Wait | null
  close: (wait: Wait) => Promise<void>
}>

export function openRequestGate(deps: GateDeps): RequestGate {
  // Kept here too: requests of this process stop at once, whatever becomes of the stored wait.
  let own: Wait | null = null
  return {
    closedBy: () => {
      const now = deps.clock.now()
      const waits = [own, deps.gate()].filter((wait) => wait !== null)
      return waits.filter((wait) => isInForce(wait, now)).reduce<Wait | null>(later, null)
    },
    close: async (wait) => {
      own = later(own, wait)
      try {
        await deps.onWait(wait)
      } catch {
        // The limit is the news, and it tells what became of a write; this process keeps to it anyway.
      }
    },
  }
}

/** A wait longer than any we store shows that the clock was set back: asking once more finds the truth. */
function isInForce(wait: Wait, now: number): boolean {
  const leftMs = fromTimestamp(wait.until) - now
  return leftMs > 0 && leftMs <= LIMITS.rateLimitCapMs
}

function later(a: Wait | null, b: Wait): Wait {
  return a === null || fromTimestamp(b.until) > fromTimestamp(a.until) ? b : a
}
