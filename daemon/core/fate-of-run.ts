import type { Journal, RunStage } from './journal.ts'
import type { QueueEntry } from './queue-state.ts'
import type { QueueVerb } from './queue-verbs.ts'
import { resumableStage } from './resume.ts'

/** What becomes of what the last run did. `stage` is where it would go on, or where it stands. */
export type RunFate =
  | Readonly<{ kind: 'nothing' }>
  | Readonly<{ kind: 'resumed' | 'dropped'; runId: string; stage: RunStage }>

/** Between these a run has begun and is not decided. */
const UNDECIDED: ReadonlySet<RunStage> = new Set(['owned', 'launching', 'finished', 'publishing'])

/**
 * Whether the paid work of the last run goes on, is dropped, or there is none.
 * @param journal of the last run; null = there was none, or it cannot be read
 * @param isKept whether result and tree of that run are still there
 */
export function fateOfRun(
  verb: QueueVerb,
  entry: QueueEntry,
  journal: Journal | null,
  { isKept, isForced }: Readonly<{ isKept: boolean; isForced: boolean }>,
): RunFate {
  if (journal === null) return { kind: 'nothing' }
  const { runId } = journal
  const stage = goesOnAt(entry, journal, isKept)
  if (stage !== null) {
    const isResumed = verb === 'reset' && !isForced
    return { kind: isResumed ? 'resumed' : 'dropped', runId, stage }
  }
  return UNDECIDED.has(journal.stage)
    ? { kind: 'dropped', runId, stage: journal.stage }
    : { kind: 'nothing' }
}

/** A run of an earlier generation answered another wish, so it never goes on for this one. */
function goesOnAt(entry: QueueEntry, journal: Journal, isKept: boolean): RunStage | null {
  if (journal.generation !== entry.generation) return null
  const stage = resumableStage(journal)
  return stage === 'finished' && !isKept ? null : stage
}

/**
 * The journal of a run that nobody shall carry on any more; the same object when nobody would. It names the
 * stage in which the run was given up. The epoch is raised, so that an owner which is not known to us stops
 * before its next write.
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
