import type { Config } from '../config/make-config.ts'
import { describeFault } from '../core/fault.ts'
import type { Journal } from '../core/journal.ts'
import type { Claims, Clock, Journals, Store } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { openClaims } from '../state/claims.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf, type StateLayout } from '../state/layout.ts'
import { systemClock } from '../sys/clock.ts'

/** What the queue commands work with. They need neither a token nor GitHub. */
export type QueueParts = Readonly<{
  clock: Clock
  layout: StateLayout
  store: Store
  journals: Journals
  claims: Claims
}>

/** @param archiveCorrupt whether a corrupt file may be copied aside; a command that only reads changes nothing */
export function openQueue({ stateDir }: Config, archiveCorrupt: boolean): QueueParts {
  const clock = systemClock
  return {
    clock,
    layout: layoutOf(stateDir),
    store: openJsonStore({ clock, archiveCorrupt }, stateDir),
    journals: openJournals(stateDir),
    claims: openClaims({ clock }, stateDir),
  }
}

/** The run that holds an entry, or held it last. */
export type LastRun = Readonly<{
  runId: string | null
  journal: Journal | null
  /** Why the journal cannot be read; null = it was read, or there is none. */
  problem: string | null
}>

/** A journal that cannot be read is part of the answer and no fault. */
export function readLastRun(
  { journals }: Pick<QueueParts, 'journals'>,
  entry: QueueEntry,
): LastRun {
  const runId = entry.runId ?? entry.lastRunId
  if (runId === null) return { runId, journal: null, problem: null }
  try {
    return { runId, journal: journals.read(runId), problem: null }
  } catch (thrown) {
    return { runId, journal: null, problem: describeFault(thrown) }
  }
}
