import type { Config } from '../config/make-config.ts'
import type { RunFate } from '../core/fate-of-run.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import type { QueueVerb } from '../core/queue-verbs.ts'
import { oneLine } from './one-line.ts'
import type { LastRun } from './open-queue.ts'

export type QueueChangeRequest = Readonly<{
  verb: QueueVerb
  /** `owner/repo#number`, as typed. */
  issue: string
  /** Report what would happen; take no lock and write nothing. */
  dryRun: boolean
  /** `--force-finalization-reset`: drop the work of a run that could go on. */
  isForced: boolean
}>

/** `queue reset --json`, `queue reprocess --json`. With `dry_run`, what they would report. */
export type QueueChange = Readonly<{
  issue: string
  phase_before: string
  phase: string
  generation_before: number
  generation: number
  /** The run that goes on without another worker. */
  resumed_run: string | null
  /** The run that could have gone on, or was at work, and is given up. */
  dropped_run: string | null
  dry_run: boolean
  circuits_closed: readonly string[]
}>

/** The entry, its last run, and what the change means for that run. */
export type QueueChangePlan = Readonly<{ entry: QueueEntry; last: LastRun; fate: RunFate }>

/** The entry as it is after the change, and the circuits that were closed with it. */
type Requeued = Readonly<{ entry: QueueEntry; closed: readonly string[] }>

/** What became of the entry; of a dry run, what would become of it. */
export function reportQueueChange(
  { dryRun }: QueueChangeRequest,
  { entry: before, fate }: QueueChangePlan,
  { entry: after, closed }: Requeued,
): QueueChange {
  return {
    issue: formatIssue(before.key),
    phase_before: before.phase,
    phase: after.phase,
    generation_before: before.generation,
    generation: after.generation,
    resumed_run: fate.kind === 'resumed' ? fate.runId : null,
    dropped_run: fate.kind === 'dropped' ? fate.runId : null,
    dry_run: dryRun,
    circuits_closed: closed,
  }
}

/** The change as lines for people. */
export function describeQueueChange(
  config: Config,
  { verb, dryRun }: QueueChangeRequest,
  { entry, last, fate }: QueueChangePlan,
  report: QueueChange,
): readonly string[] {
  const { issue, generation_before: before, generation } = report
  const as = before === generation ? `generation ${before}` : `generation ${before} → ${generation}`
  const head = dryRun
    ? [
        `${issue} is ${entry.phase}: attempts ${entry.attempts}, last run ${last.runId ?? 'none'}, ` +
          `last error: ${oneLine(entry.lastError?.message ?? 'none')}`,
        `A ${verb} would queue it again, as ${as}.`,
      ]
    : [`${issue} was ${entry.phase} and is queued again, as ${as}.`]
  const run = {
    nothing: 'A new run begins; its attempts count from zero.',
    resumed: `Its run ${last.runId} goes on at the stage "${'stage' in fate ? fate.stage : ''}", without another worker.`,
    dropped: `A new run begins; nothing of run ${last.runId} goes on.`,
  }[fate.kind]
  const label = config.triggerLabels[entry.ticket]
  const next = dryRun
    ? 'Nothing was changed.'
    : `The next tick picks it up: caduceus run. The issue must be open and carry its label (${label}) then.`
  const closed = report.circuits_closed
  const fixed = closed.length === 0 ? [] : [`Closed, so that it may start: ${closed.join(', ')}.`]
  return [...head, run, ...fixed, next]
}
