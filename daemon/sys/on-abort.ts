import { setMaxListeners } from 'node:events'

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
