import { writeSync } from 'node:fs'
import { onSignals } from './on-signals.ts'

// How a process of ours ends before its work is done. Ending at any line is safe: the next process goes on from
// what is durable. So a process that should be gone exits, instead of hoping for its own order.

const STDERR = 2

/**
 * Exits when the time is over, with exit code 1 and a line on stderr; unless the returned
 * function is called before. Does not keep the process alive.
 */
export function leaveAfter(ms: number, line: string): () => void {
  const timer = setTimeout(() => {
    writeSync(STDERR, `${line}\n`)
    exitNow(1)
  }, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/**
 * A signal that aborts at the first SIGINT or SIGTERM: the work in hand is finished, nothing new is started.
 * When that takes longer than `drainMs` (0 = at once), or at a second signal, the process exits. The
 * returned `stop` gives the signals their usual meaning back.
 */
export function leaveOnSignal(
  drainMs: number,
): Readonly<{ signal: AbortSignal; stop: () => void }> {
  const leaving = new AbortController()
  const stop = onSignals(['SIGINT', 'SIGTERM'], () => {
    if (leaving.signal.aborted) exitNow(0)
    leaving.abort()
    setTimeout(() => exitNow(0), drainMs).unref()
  })
  return { signal: leaving.signal, stop }
}

function exitNow(code: number): never {
  // oxlint-disable-next-line unicorn/no-process-exit -- pending work would keep the process alive
  process.exit(code)
}
