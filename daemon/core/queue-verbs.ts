import { type CircuitPolicy, circuitId, evaluateCircuit } from './circuits.ts'
import { formatIssue, type IssueKey } from './issue-key.ts'
import type { Journal, RunStage } from './journal.ts'
import type { Circuits, Phase, QueueEntry } from './queue-state.ts'
import { resumableStage } from './resume.ts'

// What an operator may do to an entry with `queue reset` and `queue reprocess` (R§1.7, R§1.8 with W15
// mended), and what that means for its last run.

/** The event of core/transitions.ts that each command is. */
export const QUEUE_VERBS = {
  reset: { event: 'reset' },
  reprocess: { event: 'reprocessed' },
} as const satisfies Record<string, { event: 'reset' | 'reprocessed' }>

export type QueueVerb = keyof typeof QUEUE_VERBS

/** null = allowed; else what to do instead, `{issue}` standing for the issue. */
type Hint = string | null

const REFUSALS = {
  reset: {
    failed: null,
    skipped: null,
    needs_attention: null,
    queued:
      'It waits for its turn already, see: caduceus queue show {issue}. ' +
      'To forget its earlier runs: caduceus queue reprocess {issue}',
    in_progress:
      'Its run goes on by itself, see: caduceus queue show {issue}. ' +
      'To give a run up whose processes are gone: caduceus queue reprocess {issue}',
    previewed:
      'It begins by itself once dry_run is off. ' +
      'For another dry run: caduceus queue reprocess {issue}',
    awaiting_review: 'Merge its pull request, or close it; closed unmerged it can be reset.',
    done: 'To have it worked on once more: caduceus queue reprocess {issue}',
  },
  reprocess: {
    failed: null,
    skipped: null,
    needs_attention: null,
    queued: null,
    in_progress: null,
    previewed: null,
    awaiting_review: 'Merge or close its pull request first; the next tick notices that.',
    done: null,
  },
} as const satisfies Record<QueueVerb, Record<Phase, Hint>>

/** What to do instead in this phase; null = the command is allowed. */
export function refusalHint(verb: QueueVerb, { phase, key }: QueueEntry): string | null {
  const hint: Hint = REFUSALS[verb][phase]
  return hint === null ? null : hint.replaceAll('{issue}', formatIssue(key))
}

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

/**
 * The circuits without those of one issue: the operator says that its surroundings are mended.
 * `closed` names the ones that kept work back until now.
 */
export function closeCircuits(
  circuits: Circuits,
  key: IssueKey,
  now: number,
  policy: CircuitPolicy,
): Readonly<{ circuits: Circuits; closed: readonly string[] }> {
  const ids = [circuitId('repository', key), circuitId('provider', key)]
  const found = ids.filter((id) => Object.hasOwn(circuits, id))
  if (found.length === 0) return { circuits, closed: [] }
  const kept = Object.entries(circuits).filter(([id]) => !found.includes(id))
  return {
    circuits: Object.fromEntries(kept),
    closed: found.filter((id) => evaluateCircuit(circuits[id], now, policy).state !== 'closed'),
  }
}
