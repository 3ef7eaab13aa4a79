// Events and timelines as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import { findIssue, repositoryById } from './find-repository.ts'
import { restComment } from './rest-comment.ts'
import { restIssue } from './rest-issue.ts'
import { repositoryUrl } from './rest-repository.ts'
import { nodeId, userOrGhost, type View } from './rest-user.ts'
import type { Comment, Issue, IssueEvent, Repository } from './state.ts'
import { isoSecond } from './times.ts'

type RestEvent = components['schemas']['issue-event-for-issue']
type TimelineEntry = components['schemas']['timeline-issue-events']

/** What the list of events has: all but comments and cross-references, which only the timeline shows. */
export function listedEvents(issue: Issue): readonly IssueEvent[] {
  return issue.events.filter(({ kind }) => kind !== 'cross-referenced')
}

export function restEvent(view: View, repository: Repository, event: IssueEvent): RestEvent {
  const { label, rename, stateReason, commitOid } = event
  const api = repositoryUrl(view, repository)
  return {
    id: event.id,
    node_id: nodeId('EV', event.id),
    url: `${api}/issues/events/${event.id}`,
    actor: userOrGhost(view, event.actorId),
    event: event.kind,
    commit_id: commitOid,
    commit_url: commitOid === null ? null : `${api}/commits/${commitOid}`,
    created_at: isoSecond(event.createdAt),
    performed_via_github_app: null,
    ...(label === null ? {} : { label: { ...label } }),
    ...(rename === null ? {} : { rename: { ...rename } }),
    ...(event.kind === 'closed' || event.kind === 'reopened' ? { state_reason: stateReason } : {}),
  }
}

/** One entry of a timeline before it is presented. */
type TimelineItem = Readonly<{
  id: number
  createdAt: number
  comment?: Comment
  event?: IssueEvent
}>

/** Events and comments together, oldest first. */
export function timelineItems(issue: Issue): readonly TimelineItem[] {
  const items = [
    ...issue.events.map((event) => ({ id: event.id, createdAt: event.createdAt, event })),
    ...issue.comments.map((comment) => ({ id: comment.id, createdAt: comment.createdAt, comment })),
  ]
  return items.sort((a, b) => a.id - b.id)
}

export function restTimelineEntry(
  view: View,
  repository: Repository,
  issue: Issue,
  { comment, event }: TimelineItem,
): TimelineEntry | null {
  if (comment !== undefined) {
    const user = userOrGhost(view, comment.authorId)
    const shown = restComment(view, repository, issue, comment)
    const { author_association = 'NONE', performed_via_github_app: _, ...rest } = shown
    return { ...rest, event: 'commented', actor: user, user, author_association }
  }
  if (event === undefined) return null
  if (event.source === null) return restEvent(view, repository, event)
  return restCrossReference(view, event, event.source)
}

/** GitHub gives these no id. */
function restCrossReference(
  view: View,
  event: IssueEvent,
  source: NonNullable<IssueEvent['source']>,
): TimelineEntry | null {
  const from = repositoryById(view.state, source.repositoryId)
  const issue = from === null ? null : findIssue(from, source.number)
  if (from === null || issue === null) return null
  return {
    event: 'cross-referenced',
    actor: userOrGhost(view, event.actorId),
    created_at: isoSecond(event.createdAt),
    updated_at: isoSecond(event.createdAt),
    source: { type: 'issue', issue: restIssue(view, from, issue) },
  }
}
