import { issueId } from '../core/issue-key.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import type { Ports } from './open-ports.ts'

const LOOK_MS = 200

/**
 * Waits until every given run has settled. A run whose runner left before that (it waits for a settle
 * time, or its runner died) is taken over by another look of the tick when it is due.
 * The runs go on without us when the signal aborts.
 * @param lookAgain one more tick, under the tick lock; returns the runs it took up
 * Faults: state/*.
 */
export async function waitForRuns(
  ports: Pick<Ports, 'clock' | 'journals' | 'claims' | 'store'>,
  runIds: readonly string[],
  lookAgain: () => Promise<readonly string[]>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = ports
  const waited = new Set(runIds)
  while (!signal.aborted) {
    const open = [...waited].filter((runId) => !isSettled(ports, runId))
    if (open.length === 0) return
    if (open.some((runId) => isForsaken(ports, runId))) {
      for (const runId of await lookAgain()) waited.add(runId)
    }
    await clock.sleep(LOOK_MS, signal)
  }
}

function isSettled({ journals, store }: Pick<Ports, 'journals' | 'store'>, runId: string): boolean {
  const journal = journals.read(runId)
  if (journal === null || journal.stage === 'settled') return true
  const entry = store.readQueue().entries[issueId(journal.key)]
  return entry?.runId !== runId && journal.stage === 'starting'
}

/** Nobody holds it, and it is time to go on. */
function isForsaken(
  { journals, claims, clock }: Pick<Ports, 'journals' | 'claims' | 'clock'>,
  runId: string,
): boolean {
  const journal = journals.read(runId)
  if (journal === null || journal.stage === 'settled') return false
  const isDue = journal.notBefore === null || fromTimestamp(journal.notBefore) <= clock.now()
  return isDue && !claims.isHeld(journal.key)
}
