import { fault } from '../core/fault.ts'
import { formatIssue, issueId, repositoryOf, requireIssueKey } from '../core/issue-key.ts'
import type { Journal, RunStage } from '../core/journal.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import type { StateLayout } from '../state/layout.ts'
import { fileStatus } from '../sys/files.ts'
import { inspectQueue } from './inspect-queue.ts'
import { type QueueParts, readLastRun } from './open-queue.ts'
import { type ShownEntry, showEntry } from './show-entry.ts'

/** The last run of an entry, as `queue show --json` gives it. */
export type ShownRun = Readonly<{
  run_id: string
  /** Why its journal cannot be shown; null = it is shown. */
  problem: string | null
  /** Whether a process holds the claim of the issue, which is the only evidence of life (I4). */
  claim_held: boolean
  /** The runner's process id while the claim is held. */
  pid: number | null
  journal: ShownJournal | null
  /** Files and folders of the run that exist. */
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
  /** The publish plan; null until the publication is prepared. */
  plan: string | null
  /** What each publish action left on GitHub, such as a number or a commit. */
  markers: Journal['markers']
  /** Where the commit is retained; null = there is none yet. */
  commit_kept: Readonly<{ store: string; ref: string }> | null
  /** A write whose effect is not known. */
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
  const facts = inspectQueue()
  const entry = facts.queue.entries[issueId(key)]
  if (entry === undefined) throw fault('queue/unknown', { issue: formatIssue(key) })
  return { ...showEntry(facts, entry), last_run: showRun(facts.parts, entry) }
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

/** The journal without the prepared texts, which are the worker's words. */
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
  return Object.fromEntries(Object.entries(paths).filter(([, path]) => isWorthShowing(path)))
}

/** An empty file is not shown: a runner prints nothing unless it crashes. */
function isWorthShowing(path: string): boolean {
  const status = fileStatus(path)
  return status !== null && (status.kind === 'directory' || status.size > 0)
}
