import type { Diagnostic } from './diagnostics.ts'
import { formatIssue, type IssueKey, type RepositoryName } from './issue-key.ts'
import { findLabel, type Ticket, type TriggerLabels, ticketOf } from './labels.ts'
import type { IssueSummary } from './ports.ts'
import { newEntry, PHASES, type QueueEntry } from './queue-state.ts'
import { fromTimestamp, toTimestamp } from './timestamp.ts'
import type { PhaseEvent } from './transitions.ts'

/** What a polled issue means for the queue. */
export type IntakeDecision =
  | Readonly<{ kind: 'nothing' }>
  | Readonly<{ kind: 'enqueue'; entry: QueueEntry }>
  | Readonly<{ kind: 'event'; event: PhaseEvent }>
  /** Labelled after its end: only the newest `labeled` event shows whether it was labelled again. */
  | Readonly<{ kind: 'look-up-labeling'; label: string; ticket: Ticket }>
  | Readonly<{ kind: 'note'; diagnostic: Diagnostic }>

export type IntakeRules = Readonly<{ triggers: TriggerLabels; dryRun: boolean; now: number }>

const NOTHING: IntakeDecision = { kind: 'nothing' }

/**
 * Decides about one issue of a poll. The same issue and entry always give the same decision, so a tick that died
 * is repeated without harm.
 */
export function decideIntake(
  repository: RepositoryName,
  issue: IssueSummary,
  entry: QueueEntry | undefined,
  rules: IntakeRules,
): IntakeDecision {
  const key: IssueKey = { ...repository, number: issue.number }
  const ticket = ticketOf(issue.labels, rules.triggers)
  const at = toTimestamp(rules.now)
  const updatedAt = toTimestamp(issue.updatedAt)
  const note = (code: string, message: string): IntakeDecision => ({
    kind: 'note',
    diagnostic: { at, code, issue: formatIssue(key), message },
  })

  if (issue.isPullRequest) {
    return ticket === null || !issue.isOpen
      ? NOTHING
      : note(
          'pull-request-labelled',
          'A trigger label is on a pull request; only issues are worked on.',
        )
  }
  if (!issue.isOpen || ticket === null) {
    return entry === undefined ? NOTHING : cancel(entry, issue, at)
  }
  if (ticket === 'ambiguous') {
    return note('ambiguous-labels', 'Both trigger labels are set; remove one.')
  }
  if (entry === undefined) {
    return { kind: 'enqueue', entry: newEntry(key, ticket, at, updatedAt) }
  }
  if (entry.phase === 'previewed' && !rules.dryRun) {
    return { kind: 'event', event: { on: 'dry-run-ended', at } }
  }
  if (entry.phase === 'skipped' && entry.lastError?.code === 'issue/ambiguous') {
    // It waited for one of its two labels to be removed, so no label has to be set again.
    return { kind: 'event', event: { on: 'relabelled', at, ticket, seenUpdatedAt: updatedAt } }
  }
  if (!PHASES[entry.phase].terminal || entry.seenUpdatedAt === updatedAt) return NOTHING
  const label = findLabel(issue.labels, rules.triggers[ticket]) ?? rules.triggers[ticket]
  return { kind: 'look-up-labeling', label, ticket }
}

/** An entry that waits is cancelled when its issue was closed or lost its label. */
function cancel(entry: QueueEntry, issue: IssueSummary, at: string): IntakeDecision {
  if (entry.phase !== 'queued' && entry.phase !== 'previewed') return NOTHING
  // A list that is older than what was seen already says nothing about a label that was set since.
  const seenAt = entry.seenUpdatedAt
  if (seenAt !== null && issue.updatedAt < fromTimestamp(seenAt)) return NOTHING
  const reason = issue.isOpen ? 'its label was removed' : 'it was closed'
  const message = `${formatIssue(entry.key)} was withdrawn: ${reason}.`
  return {
    kind: 'event',
    event: { on: 'withdrawn', at, error: { code: 'issue/withdrawn', message, at } },
  }
}
