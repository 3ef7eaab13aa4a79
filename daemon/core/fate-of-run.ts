import type { Journal, RunStage } from './journal.ts'
import type { QueueEntry } from './queue-state.ts'
import type { QueueVerb } from './queue-verbs.ts'
import { resumableStage } from './resume.ts'

/** What becomes of the last run. `stage` is where it would go on, or where it stands. */
export type RunFate =
  | Readonly<{ kind: 'nothing' }>
  | Readonly<{ kind: 'resumed' | 'dropped'; runId: string; stage: RunStage }>

/** Stages in which a run has started and its outcome is open. */
const UNDECIDED: ReadonlySet<RunStage> = new Set(['owned', 'launching', 'finished', 'publishing'])

/**
 * Whether the last run goes on without another worker, is dropped, or has nothing to lose.
 * @param journal of the last run; null = there was none, or it cannot be read
 * @param isRetained whether result and tree of that run still exist
 * @param isForced whether the operator asked to drop work that could go on
 */
export function fateOfRun(
  verb: QueueVerb,
  entry: QueueEntry,
  journal: Journal | null,
  { isRetained, isForced }: Readonly<{ isRetained: boolean; isForced: boolean }>,
): RunFate {
  if (journal === null) return { kind: 'nothing' }
  const { runId } = journal
  const stage = resumableAt(entry, journal, isRetained)
  if (stage !== null) {
    const isResumed = verb === 'reset' && !isForced
    return { kind: isResumed ? 'resumed' : 'dropped', runId, stage }
  }
  return UNDECIDED.has(journal.stage)
    ? { kind: 'dropped', runId, stage: journal.stage }
    : { kind: 'nothing' }
}

/** A run of an earlier generation answered an earlier labelling, so it never goes on for this one. */
function resumableAt(entry: QueueEntry, journal: Journal, isRetained: boolean): RunStage | null {
  if (journal.generation !== entry.generation) return null
  const stage = resumableStage(journal)
  return stage === 'finished' && !isRetained ? null : stage
}

/**
 * The journal of a run that is given up, with the stage in which that happened. Its epoch is raised, so that an
 * unknown owner stops before its next write (PROTOCOLS, Adoption). A run that nobody would advance any more keeps
 * its journal: the same object is returned.
 */
export function giveUpRun(journal: Journal): Journal {
  const { stage, endedIn, epoch } = journal
  if (stage === 'settled' || stage === 'starting') return journal
  const at = UNDECIDED.has(stage) ? stage : null
  return {
    ...journal,
    stage: 'settled',
    endedIn: endedIn ?? at,
    epoch: epoch + 1,
    notBefore: null,
  }
}
