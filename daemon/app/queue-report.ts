import type { Config } from '../config/make-config.ts'
import { type CircuitPolicy, heldBackUntil } from '../core/circuits.ts'
import { describeFault, fault } from '../core/fault.ts'
import { formatIssue, issueId, repositoryOf, requireIssueKey } from '../core/issue-key.ts'
import type { Journal, RunStage } from '../core/journal.ts'
import type { Claims, Clock, Journals, Store } from '../core/ports.ts'
import { PHASES, type Phase, type QueueEntry, type QueueState } from '../core/queue-state.ts'
import { nextStepOf } from '../core/resume.ts'
import { evaluateGate, LONGEST_WAIT_MS } from '../core/scheduling.ts'
import { plausibleWait, toTimestamp } from '../core/timestamp.ts'
import { openClaims } from '../state/claims.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf, type StateLayout } from '../state/layout.ts'
import { systemClock } from '../sys/clock.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { fileStatus } from '../sys/files.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { tickSettingsOf } from './settings-of.ts'

/** What the queue commands work with; neither a token nor GitHub is needed. */
export type QueueParts = Readonly<{
  clock: Clock
  layout: StateLayout
  store: Store
  journals: Journals
  claims: Claims
}>

/** @param archiveCorrupt whether a corrupt file may be copied aside; looking leaves everything as it is */
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

/** The run that holds an entry, or held it last. A journal that cannot be read is a finding, no fault. */
export type LastRun = Readonly<{
  runId: string | null
  journal: Journal | null
  /** Why the journal cannot be read; null = it was, or there is none. */
  problem: string | null
}>

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

/** What keeps a queued entry from starting now. */
type Wait = Readonly<{ until: string; why: 'backoff' | 'limit' | 'circuit' }>

/** The shape in which `list` and `show` give an entry with `--json`. */
export type ShownEntry = Readonly<{
  issue: string
  phase: Phase
  ticket: string
  generation: number
  attempts: number
  interruptions: number
  degraded: QueueEntry['degraded']
  queued_at: string
  updated_at: string
  /** Of a queued entry; null = as soon as there is room. */
  next_attempt: Wait | null
  pull: QueueEntry['pull']
  last_error: QueueEntry['lastError']
  blocked_source: string | null
  /** Ends in the exact command; empty when nothing is to be done by hand. */
  next_step: string
  /** The run whose publication goes on instead of a new run. */
  resume_run: string | null
}>

export type QueueList = Readonly<{ phase: Phase | null; entries: readonly ShownEntry[] }>

/** What needs a human first, then what moves, then what rests. */
const ORDER = [
  'needs_attention',
  'failed',
  'in_progress',
  'queued',
  'awaiting_review',
  'previewed',
  'skipped',
  'done',
] as const satisfies readonly Phase[]

/** `queue list`. Reads, and changes nothing. Faults: config/*, state/*. */
export function listQueue(phase: Phase | null): QueueList {
  const look = inspectQueue()
  const shown = Object.values(look.queue.entries)
    .filter((entry) => phase === null || entry.phase === phase)
    .map((entry) => showEntry(look, entry))
  return { phase, entries: shown.toSorted(compareShown) }
}

/** Everything a report is made from, read once. */
type QueueFacts = Readonly<{
  parts: QueueParts
  now: number
  queue: QueueState
  /** What takes part of the capacity. */
  atWork: readonly QueueEntry[]
  /** Until when GitHub asked everybody to wait (milliseconds); null = it did not. */
  limitedUntil: number | null
  policy: CircuitPolicy
}>

function inspectQueue(): QueueFacts {
  const { config } = loadProgramConfig(readEnvironment())
  const parts = openQueue(config, false)
  const now = parts.clock.now()
  const { circuits: policy, pollIntervalMs } = tickSettingsOf(config)
  const queue = parts.store.readQueue()
  const { limitedUntil } = evaluateGate(parts.store.readMeta(), now, pollIntervalMs, true)
  const atWork = Object.values(queue.entries).filter(({ phase }) => PHASES[phase].slot)
  return { parts, now, queue, atWork, limitedUntil, policy }
}

/** Queued ones in the order in which they start; the others by their last change, newest first. */
function compareShown(a: ShownEntry, b: ShownEntry): number {
  const ranks = ORDER.indexOf(a.phase) - ORDER.indexOf(b.phase)
  if (ranks !== 0) return ranks
  const dated =
    a.phase === 'queued'
      ? compare(a.next_attempt?.until ?? '', b.next_attempt?.until ?? '') ||
        compare(a.queued_at, b.queued_at)
      : compare(b.updated_at, a.updated_at)
  return dated || compare(a.issue.toLowerCase(), b.issue.toLowerCase())
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function showEntry(look: QueueFacts, entry: QueueEntry): ShownEntry {
  return {
    issue: formatIssue(entry.key),
    phase: entry.phase,
    ticket: entry.ticket,
    generation: entry.generation,
    attempts: entry.attempts,
    interruptions: entry.interruptions,
    degraded: entry.degraded,
    queued_at: entry.queuedAt,
    updated_at: entry.updatedAt,
    next_attempt: entry.phase === 'queued' ? waitOf(look, entry) : null,
    pull: entry.pull,
    last_error: entry.lastError,
    blocked_source: entry.blocked?.source ?? null,
    next_step: nextStepOf(entry),
    resume_run: entry.resume,
  }
}

/** The longest of what an entry waits for, as dispatch judges it; null = it may start. */
function waitOf(look: QueueFacts, entry: QueueEntry): Wait | null {
  const { queue, atWork, now, limitedUntil, policy } = look
  const own = plausibleWait(entry.nextAttemptAt, now, LONGEST_WAIT_MS)
  const isLimit = entry.lastError?.code === 'github/rate-limited'
  const waits = [
    { at: own !== null && own > now ? own : null, why: isLimit ? 'limit' : 'backoff' },
    { at: limitedUntil, why: 'limit' },
    { at: heldBackUntil(queue.circuits, atWork, entry.key, now, policy), why: 'circuit' },
  ] as const
  const [longest] = waits
    .flatMap(({ at, why }) => (at === null ? [] : [{ at, why }]))
    .sort((a, b) => b.at - a.at)
  return longest === undefined ? null : { until: toTimestamp(longest.at), why: longest.why }
}

/** The last run of an entry, as `queue show --json` gives it. */
export type ShownRun = Readonly<{
  run_id: string
  /** Why its journal tells nothing; null = it does. */
  problem: string | null
  /** Whether a process holds the claim of the issue, which is the only evidence of life (P§1). */
  claim_held: boolean
  /** Of the process that carries the run, while the claim is held. */
  pid: number | null
  journal: ShownJournal | null
  /** Files and folders of the run that are there. */
  paths: Readonly<Record<string, string>>
}>

type ShownJournal = Readonly<{
  stage: RunStage
  attempt: number
  generation: number
  dry_run: boolean
  created_at: string
  epoch: number
  adoptions: number
  branch: string
  base: Readonly<{ branch: string; oid: string }> | null
  /** null until the texts are frozen. */
  plan: string | null
  /** What each publish stage left. */
  markers: Journal['markers']
  /** Where the commit is kept, once there is one. */
  commit_kept: Readonly<{ store: string; ref: string }> | null
  /** A write of which it is not known whether it took effect. */
  open_intent: Readonly<{ stage: string; deadline_at: string }> | null
  not_before: string | null
  trouble: Journal['trouble']
  outcome: string | null
  ended_in: RunStage | null
}>

export type QueueShow = ShownEntry & Readonly<{ last_run: ShownRun | null }>

/** `queue show`. Reads, and changes nothing. Faults: usage/invalid, queue/unknown, config/*, state/*. */
export function showIssue(issue: string): QueueShow {
  const key = requireIssueKey(issue, 'queue show')
  const look = inspectQueue()
  const entry = look.queue.entries[issueId(key)]
  if (entry === undefined) throw fault('queue/unknown', { issue: formatIssue(key) })
  return { ...showEntry(look, entry), last_run: showRun(look.parts, entry) }
}

function showRun(parts: QueueParts, entry: QueueEntry): ShownRun | null {
  const { runId, journal, problem } = readLastRun(parts, entry)
  if (runId === null) return null
  const isHeld = parts.claims.isHeld(entry.key)
  return {
    run_id: runId,
    problem: problem ?? (journal === null ? 'It has no journal: it was never begun.' : null),
    claim_held: isHeld,
    pid: isHeld ? (journal?.runner?.pid ?? null) : null,
    journal: journal === null ? null : showJournal(journal),
    paths: pathsOf(parts.layout, entry, runId),
  }
}

/** Without the frozen texts, which are the worker's words. */
function showJournal(journal: Journal): ShownJournal {
  const { base, intent, publication, markers, outcome } = journal
  const isCommitted = base !== null && markers.committed !== undefined
  return {
    stage: journal.stage,
    attempt: journal.attempt,
    generation: journal.generation,
    dry_run: journal.dryRun,
    created_at: journal.createdAt,
    epoch: journal.epoch,
    adoptions: journal.adoptions,
    branch: journal.branch,
    base: base === null ? null : { branch: base.branch, oid: base.oid },
    plan: publication?.plan ?? null,
    markers,
    commit_kept: isCommitted ? { store: base.storePath, ref: `refs/runs/${journal.runId}` } : null,
    open_intent: intent === null ? null : { stage: intent.stage, deadline_at: intent.deadlineAt },
    not_before: journal.notBefore,
    trouble: journal.trouble,
    outcome: outcome?.on ?? null,
    ended_in: journal.endedIn,
  }
}

function pathsOf(
  layout: StateLayout,
  { key }: QueueEntry,
  runId: string,
): Readonly<Record<string, string>> {
  const run = layout.run(runId)
  const paths = {
    transcript: run.transcript,
    result: run.result,
    tree: layout.worktree(repositoryOf(key), runId),
    runner_output: run.runnerOutput,
    dry_run_report: run.dryRunReport,
  }
  return Object.fromEntries(Object.entries(paths).filter(([, path]) => isThere(path)))
}

/** An empty file tells nothing: what runners print is nothing unless they crash. */
function isThere(path: string): boolean {
  const status = fileStatus(path)
  return status !== null && (status.kind === 'directory' || status.size > 0)
}
