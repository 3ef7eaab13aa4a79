// What happened to an issue.

import { findIssue, findRepository } from './find-repository.ts'
import { takeId } from './ids.ts'
import { mentionedIssues } from './issue-references.ts'
import type { By, EventKind, GitHubState, Issue, IssueEvent, Repository } from './state.ts'

/** What an event carries beyond kind, actor and time. */
type EventDetails = Partial<
  Pick<IssueEvent, 'label' | 'rename' | 'commitOid' | 'stateReason' | 'source'>
>

/** Adds an event to an issue, which counts as updated then. */
export function recordEvent(
  state: GitHubState,
  issue: Issue,
  kind: EventKind,
  by: By,
  details: EventDetails = {},
): IssueEvent {
  const event = {
    id: takeId(state),
    kind,
    actorId: by.actorId,
    createdAt: by.now,
    label: null,
    rename: null,
    commitOid: null,
    stateReason: null,
    source: null,
    ...details,
  }
  issue.events.push(event)
  touch(issue, by.now)
  return event
}

/** Marks something as having happened on an issue. */
export function touch(issue: Issue, now: number): void {
  issue.updatedAt = Math.max(issue.updatedAt, now)
}

/** Leaves a cross-reference on every issue that a text written in `source` mentions, once per source. */
export function crossReference(
  state: GitHubState,
  repository: Repository,
  source: Issue,
  text: string,
  by: By,
): void {
  for (const mention of mentionedIssues(text, repository)) {
    const target = findRepository(state, mention.owner, mention.name)
    const issue = target === null ? null : findIssue(target, mention.number)
    if (issue === null || issue === source) continue
    const from = { repositoryId: repository.id, number: source.number }
    const isKnown = issue.events.some(
      ({ source: known }) =>
        known?.repositoryId === from.repositoryId && known.number === from.number,
    )
    if (!isKnown) recordEvent(state, issue, 'cross-referenced', by, { source: from })
  }
}
