import type { Clock } from '../core/ports.ts'
import { ownAncestry, processesHolding } from './find-processes.ts'
import { isLocked } from './kernel-lock.ts'
import { killOwned } from './owner-mark.ts'
import type { ProcessIdentity } from './process-identity.ts'
import { killIdentity } from './terminate.ts'

/** How long the lock of a killed process may take to become free (PROTOCOLS, Adoption). */
const RELEASE_MS = 5000
const PAUSE_MS = 50

/**
 * Kills the process that holds a lock beyond every time it can rightly need, and returns whether the lock
 * is free then. The recorded process, whose identity is compared, goes first, with all that acts for it.
 * When it is not known, or another one holds the lock, that one is hit; a process that only probes the lock
 * does not hold it for long. This process and the ones above it are spared.
 * @param recorded the process that took the lock, as far as it is known
 * Faults: sys/io, sys/native-unavailable.
 */
export async function endLockHolder(
  clock: Clock,
  path: string,
  recorded: ProcessIdentity | null,
): Promise<boolean> {
  if (recorded !== null) killOwned(recorded)
  const isFree = recorded !== null && (await waitUntilFree(clock, path, RELEASE_MS / 5))
  if (isFree) return true
  for (const holder of await holdersOf(clock, path)) killIdentity(holder, 'SIGKILL')
  return waitUntilFree(clock, path, RELEASE_MS)
}

async function holdersOf(clock: Clock, path: string): Promise<readonly ProcessIdentity[]> {
  const first = new Set(processesHolding(path).map(({ pid }) => pid))
  await clock.sleep(PAUSE_MS)
  const spared = ownAncestry()
  return processesHolding(path).filter(({ pid }) => first.has(pid) && !spared.has(pid))
}

/** Time is counted in sleeps: a clock that is set meanwhile must not end the wait. */
async function waitUntilFree(clock: Clock, path: string, waitMs: number): Promise<boolean> {
  for (let waited = 0; isLocked(path); waited += PAUSE_MS) {
    if (waited >= waitMs) return false
    await clock.sleep(PAUSE_MS)
  }
  return true
}
