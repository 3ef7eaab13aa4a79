import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

/** Looks again and again until something is found; fails when that takes too long. */
export async function waitUntil<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  timeoutMs = 20_000,
): Promise<T> {
  for (const end = performance.now() + timeoutMs; ; await pause(5)) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    assert.ok(performance.now() < end, `not within ${timeoutMs} ms: ${what}`)
  }
}
