import { setMaxListeners } from 'node:events'
import type { Clock } from '../core/ports.ts'

/**
 * Calls `act` once when the signal aborts; soon, but never before this returns, when it already has.
 * Returns how to stop listening; call it in any case. One signal may end any number of waits, so Node's leak warning is off for it.
 */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined) return () => {}
  if (signal.aborted) {
    queueMicrotask(act)
    return () => {}
  }
  setMaxListeners(0, signal)
  signal.addEventListener('abort', act, { once: true })
  return () => signal.removeEventListener('abort', act)
}

/**
 * Whether a promise resolves within `waitMs` and before the signal aborts. Leaves no timer behind.
 * A rejection is passed on.
 */
export async function settlesWithin(
  clock: Clock,
  promise: Promise<unknown>,
  waitMs: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const over = new AbortController()
  const abort = (): void => over.abort()
  signal?.addEventListener('abort', abort)
  try {
    return await Promise.race([
      promise.then(() => true),
      clock.sleep(waitMs, over.signal).then(() => false),
    ])
  } finally {
    over.abort()
    signal?.removeEventListener('abort', abort)
  }
}
