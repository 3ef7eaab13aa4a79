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

/**
 * Runs a task for every item, at most `limit` at a time, and waits for all of them. The results stand
 * in the order of the items; the task catches its own faults.
 */
export async function eachBounded<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>()
  const queue = items.entries()
  const work = async (): Promise<void> => {
    for (const [at, item] of queue) results.set(at, await task(item))
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work))
  return [...results.entries()].sort(([a], [b]) => a - b).map(([, result]) => result)
}
