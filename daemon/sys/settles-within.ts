import type { Clock } from '../core/ports.ts'

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
