import type { GarbageItem, GarbageKind } from './garbage.ts'
import type { Journal } from './journal.ts'
import { PHASES, type QueueEntry } from './queue-state.ts'
import { resumableStage } from './resume.ts'
import { fromTimestamp } from './timestamp.ts'

// How long the garbage of runs is retained, and why. Pure: facts go in, decisions come out.

/** How long things are retained, in milliseconds. */
export type RetentionPolicy = Readonly<{
  /** `run_retention_days`. */
  runMs: number
  /** `worktree_gc_older_than_days`; null = `worktree_gc_disabled`: no tree is removed by itself. */
  treeMs: number | null
  /** `attic_retention_days`. */
  atticMs: number
}>

/** After which time something goes: `garbage` is an hour, the others are configured. */
type Period = 'never' | 'garbage' | 'tree' | 'run' | 'attic'

/** Nobody works on one file, or makes the folder of one run, for longer. */
const GARBAGE_MS = 3_600_000

/**
 * How a run stands with its issue, and after which time its files and its tree go. Work that is paid for
 * is retained as long as the run; a tree that only failed until the next attempt, or a day.
 */
// biome-ignore format: a table is read by its rows
export const LIVENESS_CLASSES = {
  'at-work': { run: 'never', tree: 'never', reason: 'a process, a claim or an issue in progress has it' },
  resuming: { run: 'never', tree: 'never', reason: 'its issue waits to go on with it' },
  previewed: { run: 'never', tree: 'run', reason: 'its report waits for a human' },
  undecided: { run: 'run', tree: 'run', reason: 'a human may want its work' },
  current: { run: 'never', tree: 'tree', reason: 'its issue goes on without its tree' },
  over: { run: 'run', tree: 'tree', reason: 'its issue has ended or has a newer run' },
  unknown: { run: 'run', tree: 'tree', reason: 'it has no journal' },
  'half-written': { run: 'garbage', tree: 'tree', reason: 'it was never begun' },
} as const satisfies Record<string, { run: Period; tree: Period; reason: string }>

export type Liveness = keyof typeof LIVENESS_CLASSES

/** What does not depend on a run. */
const OTHERS = {
  temporary: { period: 'garbage', reason: 'its writer did not finish it' },
  folder: { period: 'garbage', reason: 'it is empty' },
  archived: { period: 'attic', reason: 'it was kept aside for a while' },
} as const satisfies Record<
  Exclude<GarbageKind, 'run' | 'tree'>,
  { period: Period; reason: string }
>

/** What is known about the run that a piece of garbage belongs to. One whose journal cannot be read is not touched. */
type RunFacts = Readonly<{
  runId: string
  /** A claim file names it, its issue's claim is held, or one of its own locks is. */
  isHeld: boolean
  journal: Journal | null
  /** Whether there is more of it than its folder; only of one without a journal. */
  hasFiles: boolean
  /** Of the issue that the journal names. */
  entry: QueueEntry | undefined
}>

/** Phases in which a human inspects what the last run made. */
const INSPECTED: readonly QueueEntry['phase'][] = ['needs_attention', 'failed']

/** How a run stands: the first that holds counts. */
export function livenessOf({ runId, isHeld, journal, hasFiles, entry }: RunFacts): Liveness {
  if (isHeld || entry?.runId === runId) return 'at-work'
  if (journal === null) return hasFiles ? 'unknown' : 'half-written'
  if (entry?.resume === runId) return 'resuming'
  // No process goes on with it any more, and none has settled it either: `queue reprocess` dropped it.
  const isDropped = journal.stage !== 'settled' && journal.stage !== 'starting'
  if (entry?.lastRunId !== runId) return isDropped ? 'undecided' : 'over'
  if (entry.phase === 'previewed') return 'previewed'
  if (!PHASES[entry.phase].terminal) return 'current'
  return INSPECTED.includes(entry.phase) || isDropped || isPaidFor(journal) ? 'undecided' : 'over'
}

/** Its worker had succeeded, and what it made was not published. */
function isPaidFor(journal: Journal): boolean {
  const { endedIn } = journal
  return resumableStage(journal) !== null || endedIn === 'finished' || endedIn === 'publishing'
}

/** `refuse`: it is not what it should be, is not touched, and reported. */
export type RetentionDecision = Readonly<{ action: 'keep' | 'remove' | 'refuse'; reason: string }>

/**
 * What becomes of a piece of garbage. One that is exactly as old as its limit goes.
 * @param liveness of its run; only of runs and trees
 * @param changedAt the newest change of it, its journal and its issue, milliseconds since the epoch
 */
export function decideRetention(
  { kind, isPlain }: Pick<GarbageItem, 'kind' | 'isPlain'>,
  liveness: Liveness,
  changedAt: number,
  now: number,
  policy: RetentionPolicy,
): RetentionDecision {
  if (!isPlain) return { action: 'refuse', reason: 'it is a symbolic link or no folder' }
  const { period, reason } = ruleOf(kind, liveness)
  const isTreeRetained = kind === 'tree' && policy.treeMs === null
  const limitMs = isTreeRetained ? Number.POSITIVE_INFINITY : lengthOf(period, policy)
  return { action: now - changedAt >= limitMs ? 'remove' : 'keep', reason }
}

function ruleOf(
  kind: GarbageKind,
  liveness: Liveness,
): Readonly<{ period: Period; reason: string }> {
  if (kind !== 'run' && kind !== 'tree') return OTHERS[kind]
  const { reason, ...periods } = LIVENESS_CLASSES[liveness]
  return { period: periods[kind], reason }
}

function lengthOf(period: Period, { runMs, treeMs, atticMs }: RetentionPolicy): number {
  const never = Number.POSITIVE_INFINITY
  return { never, garbage: GARBAGE_MS, tree: treeMs ?? never, run: runMs, attic: atticMs }[period]
}

/**
 * Whether an entry is old enough to go from the queue. It may then only go when its issue no longer carries
 * a trigger label: else the next poll would take it for a new one, and it would be paid for again.
 */
export function isOldEnough(
  { phase, updatedAt }: QueueEntry,
  now: number,
  { runMs }: RetentionPolicy,
): boolean {
  return PHASES[phase].terminal && now - fromTimestamp(updatedAt) >= runMs
}
