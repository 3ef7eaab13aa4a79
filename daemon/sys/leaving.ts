import { writeSync } from 'node:fs'
import { onSignals } from './on-signals.ts'

// How a process of ours ends before its work is done. Ending at any line is safe: whoever comes next goes
// on from what is durable. So a process that should be gone leaves, instead of hoping for its own order.

const STDERR = 2

/**
 * Leaves the process when the time is over, with exit code 1 and a line on stderr; unless the returned
 * function is called before. Does not keep the process alive.
 */
export function leaveAfter(ms: number, line: string): () => void {
  const timer = setTimeout(() => {
    writeSync(STDERR, `${line}\n`)
    leave(1)
  }, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/**
 * A signal that aborts at the first SIGINT or SIGTERM: the work in hand is finished, nothing new is begun.
 * When that takes longer than `drainMs` (0 = at once), or at a second signal, the process leaves. The
 * returned `stop` gives the signals their usual meaning back.
 */
export function leaveOnSignal(
  drainMs: number,
): Readonly<{ signal: AbortSignal; stop: () => void }> {
  const leaving = new AbortController()
  const stop = onSignals(['SIGINT', 'SIGTERM'], () => {
    if (leaving.signal.aborted) leave(0)
    leaving.abort()
    setTimeout(() => leave(0), drainMs).unref()
  })
  return { signal: leaving.signal, stop }
}

function leave(code: number): never {
  // oxlint-disable-next-line unicorn/no-process-exit -- pending work would keep the process alive
  process.exit(code)
}
