// What is done with an issue, pull requests included.

import { takeId } from './ids.ts'
import { crossReference, recordEvent, touch } from './issue-events.ts'
import { addLabels } from './labels.ts'
import type { By, GitHubState, Issue, Pull, Repository, StateReason } from './state.ts'

/** Opens an issue, or a pull request when `pull` is given; its labels come with one event each. */
export function openIssue(
  state: GitHubState,
  repository: Repository,
  order: Readonly<{
    title: string
    body: string | null
    labels?: readonly string[]
    pull?: Pull
  }>,
  by: By,
): Issue {
  const issue: Issue = {
    id: takeId(state),
    number: repository.nextNumber,
    title: order.title,
    body: order.body,
    authorId: by.actorId,
    state: 'open',
    stateReason: null,
    createdAt: by.now,
    updatedAt: by.now,
    closedAt: null,
    closedById: null,
    labelIds: [],
    comments: [],
    events: [],
    pull: order.pull ?? null,
    departure: null,
    overlay: null,
  }
  repository.nextNumber += 1
  repository.issues.push(issue)
  addLabels(state, repository, issue, order.labels ?? [], by)
  crossReference(state, repository, issue, order.body ?? '', by)
  return issue
}

/** Changes title or body; an unchanged field makes no event. */
export function editIssue(
  state: GitHubState,
  repository: Repository,
  issue: Issue,
  change: Readonly<{ title?: string; body?: string | null }>,
  by: By,
): void {
  const { title = issue.title, body = issue.body } = change
  if (title !== issue.title) {
    recordEvent(state, issue, 'renamed', by, { rename: { from: issue.title, to: title } })
    issue.title = title
  }
  if (body !== issue.body) {
    issue.body = body
    touch(issue, by.now)
    crossReference(state, repository, issue, body ?? '', by)
  }
}

/** Closes an open issue or pull request; nothing happens to a closed one. */
export function closeIssue(
  state: GitHubState,
  issue: Issue,
  by: By,
  how: Readonly<{ reason?: StateReason; commitOid?: string | null }> = {},
): void {
  if (issue.state === 'closed') return
  const stateReason = issue.pull === null ? (how.reason ?? 'completed') : null
  issue.state = 'closed'
  issue.stateReason = stateReason
  issue.closedAt = by.now
  issue.closedById = by.actorId
  recordEvent(state, issue, 'closed', by, { stateReason, commitOid: how.commitOid ?? null })
}

/** Opens a closed issue again; nothing happens to an open one. */
export function reopenIssue(state: GitHubState, issue: Issue, by: By): void {
  if (issue.state === 'open') return
  issue.state = 'open'
  issue.stateReason = issue.pull === null ? 'reopened' : null
  issue.closedAt = null
  issue.closedById = null
  recordEvent(state, issue, 'reopened', by)
}
