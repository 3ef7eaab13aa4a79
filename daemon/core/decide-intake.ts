import type { Diagnostic } from './diagnostics.ts'
import { formatIssue, type IssueKey, type RepositoryName } from './issue-key.ts'
import { findLabel, type Ticket, type TriggerLabels, ticketOf } from './labels.ts'
import type { IssueSummary } from './ports.ts'
import { newEntry, PHASES, type QueueEntry } from './queue-state.ts'
import { fromTimestamp, toTimestamp } from './timestamp.ts'
import type { PhaseEvent } from './transitions.ts'

/** What an issue, as the poll saw it, means for the queue. */
export type IntakeDecision =
  | Readonly<{ kind: 'nothing' }>
  | Readonly<{ kind: 'enqueue'; entry: QueueEntry }>
  | Readonly<{ kind: 'event'; event: PhaseEvent }>
  /** Labelled after an end: only the newest `labeled` event tells whether it is a new wish. */
  | Readonly<{ kind: 'look-up-labeling'; label: string; ticket: Ticket }>
  | Readonly<{ kind: 'note'; diagnostic: Diagnostic }>

export type IntakeRules = Readonly<{ triggers: TriggerLabels; dryRun: boolean; now: number }>

const NOTHING: IntakeDecision = { kind: 'nothing' }

/**
 * Decides about one issue of a poll. Level-triggered: the same issue and entry always give the same
 * decision, so a tick that died is simply repeated (design §6, R§5.6).
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
    return entry === undefined ? NOTHING : withdraw(entry, issue, at)
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
    // It waited for one of its two labels to go, so no label need be set anew.
    return { kind: 'event', event: { on: 'relabelled', at, ticket, seenUpdatedAt: updatedAt } }
  }
  if (!PHASES[entry.phase].terminal || entry.seenUpdatedAt === updatedAt) return NOTHING
  const label = findLabel(issue.labels, rules.triggers[ticket]) ?? rules.triggers[ticket]
  return { kind: 'look-up-labeling', label, ticket }
}

function withdraw(entry: QueueEntry, issue: IssueSummary, at: string): IntakeDecision {
  if (entry.phase !== 'queued' && entry.phase !== 'previewed') return NOTHING
  // From a list that is behind what was seen already: it says nothing of the wish that came since.
  if (entry.seenUpdatedAt !== null && issue.updatedAt < fromTimestamp(entry.seenUpdatedAt))
    return NOTHING
  const reason = issue.isOpen ? 'its label was removed' : 'it was closed'
  const message = `${formatIssue(entry.key)} was withdrawn: ${reason}.`
  return {
    kind: 'event',
    event: { on: 'withdrawn', at, error: { code: 'issue/withdrawn', message, at } },
  }
}
