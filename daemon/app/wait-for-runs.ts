import { issueId } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import { fromTimestamp, plausibleWait } from '../core/timestamp.ts'
import type { Ports } from './open-ports.ts'

const PROBE_INTERVAL_MS = 200
const LONGEST_PAUSE_MS = 10_000

/**
 * Waits until every given run has settled. A run whose runner left before that (it waits for a settle
 * time, or its runner died) is taken over by another look of the tick when it is due.
 * The runs go on without us when the signal aborts.
 * @param probeAgain one more tick, under the tick lock; returns the runs it took up
 * Faults: state/*.
 */
export async function waitForRuns(
  ports: Pick<Ports, 'clock' | 'journals' | 'claims' | 'store'>,
  runIds: readonly string[],
  probeAgain: () => Promise<readonly string[]>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = ports
  const waited = new Set(runIds)
  let pauseMs = PROBE_INTERVAL_MS
  while (!signal.aborted) {
    const open = [...waited].filter((runId) => !isSettled(ports, runId))
    if (open.length === 0) return
    const isForsakenAny = open.some((runId) => isForsaken(ports, runId))
    // A look that does not help is not repeated at once.
    pauseMs = isForsakenAny ? Math.min(pauseMs * 2, LONGEST_PAUSE_MS) : PROBE_INTERVAL_MS
    if (isForsakenAny) for (const runId of await probeAgain()) waited.add(runId)
    await clock.sleep(pauseMs, signal)
  }
}

function isSettled({ journals, store }: Pick<Ports, 'journals' | 'store'>, runId: string): boolean {
  const journal = journals.read(runId)
  if (journal === null || journal.stage === 'settled') return true
  const entry = store.readQueue().entries[issueId(journal.key)]
  return entry?.runId !== runId && journal.stage === 'starting'
}

/** It is time to go on, and nobody holds it, or its owner should have written again by now. */
function isForsaken(
  { journals, claims, clock }: Pick<Ports, 'journals' | 'claims' | 'clock'>,
  runId: string,
): boolean {
  const journal = journals.read(runId)
  if (journal === null || journal.stage === 'settled') return false
  const now = clock.now()
  const isDue = (plausibleWait(journal.notBefore, now, LIMITS.rateLimitCapMs) ?? now) <= now
  const isOverdue = journal.ownedUntil !== null && fromTimestamp(journal.ownedUntil) < now
  return isDue && (isOverdue || !claims.isHeld(journal.key))
}
