// Issues, labels, comments and events as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import { associationOf } from './accounts.ts'
import { labelsOf } from './issues.ts'
import { findIssue, fullName, repositoryById } from './repositories.ts'
import { nodeId, repositoryUrl, userOrGhost, userOrNull, type View } from './rest-repository.ts'
import {
  type Comment,
  type Issue,
  type IssueEvent,
  isoSecond,
  isoSecondOrNull,
  type Label,
  type Repository,
} from './world.ts'

type RestIssue = components['schemas']['issue']
type RestComment = components['schemas']['issue-comment']
type RestLabel = components['schemas']['label']

export function issueUrl(view: View, repository: Repository, issue: Issue): string {
  return `${repositoryUrl(view, repository)}/issues/${issue.number}`
}

/** The page for people. */
export function htmlUrl(view: View, repository: Repository, issue: Issue): string {
  const kind = issue.pull === null ? 'issues' : 'pull'
  return `${view.url}/${fullName(repository)}/${kind}/${issue.number}`
}

/** An issue, or a pull request as the issue endpoints show it. */
export function restIssue(view: View, repository: Repository, issue: Issue): RestIssue {
  const url = issueUrl(view, repository, issue)
  return {
    id: issue.id,
    node_id: nodeId(issue.pull === null ? 'I' : 'PR', issue.id),
    url,
    repository_url: repositoryUrl(view, repository),
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    timeline_url: `${url}/timeline`,
    html_url: htmlUrl(view, repository, issue),
    number: issue.number,
    state: issue.state,
    state_reason: issue.stateReason,
    title: issue.title,
    body: issue.body,
    user: userOrNull(view, issue.authorId),
    author_association: associationOf(view.world, repository, issue.authorId),
    labels: labelsOf(repository, issue).map((label) => restLabel(view, repository, label)),
    assignee: null,
    assignees: [],
    milestone: null,
    locked: false,
    active_lock_reason: null,
    comments: issue.comments.length,
    created_at: isoSecond(issue.createdAt),
    updated_at: isoSecond(issue.updatedAt),
    closed_at: isoSecondOrNull(issue.closedAt),
    closed_by: userOrNull(view, issue.closedById),
    performed_via_github_app: null,
    reactions: noReactions(url),
    ...pullPart(view, repository, issue),
    ...issue.overlay,
  }
}

function pullPart(view: View, repository: Repository, issue: Issue): Partial<RestIssue> {
  if (issue.pull === null) return {}
  const page = htmlUrl(view, repository, issue)
  return {
    draft: issue.pull.isDraft,
    pull_request: {
      url: `${repositoryUrl(view, repository)}/pulls/${issue.number}`,
      html_url: page,
      diff_url: `${page}.diff`,
      patch_url: `${page}.patch`,
      merged_at: isoSecondOrNull(issue.pull.mergedAt),
    },
  }
}

export function restLabel(view: View, repository: Repository, label: Label): RestLabel {
  return {
    id: label.id,
    node_id: nodeId('LA', label.id),
    url: `${repositoryUrl(view, repository)}/labels/${encodeURIComponent(label.name)}`,
    name: label.name,
    color: label.color,
    default: false,
    description: label.description === '' ? null : label.description,
  }
}

export function restComment(
  view: View,
  repository: Repository,
  issue: Issue,
  comment: Comment,
): RestComment {
  const url = `${repositoryUrl(view, repository)}/issues/comments/${comment.id}`
  return {
    id: comment.id,
    node_id: nodeId('IC', comment.id),
    url,
    html_url: `${htmlUrl(view, repository, issue)}#issuecomment-${comment.id}`,
    issue_url: issueUrl(view, repository, issue),
    body: comment.body,
    user: userOrNull(view, comment.authorId),
    author_association: associationOf(view.world, repository, comment.authorId),
    created_at: isoSecond(comment.createdAt),
    updated_at: isoSecond(comment.updatedAt),
    performed_via_github_app: null,
    reactions: noReactions(url),
  }
}

const noReactions = (url: string) => ({
  url: `${url}/reactions`,
  total_count: 0,
  '+1': 0,
  '-1': 0,
  laugh: 0,
  hooray: 0,
  confused: 0,
  heart: 0,
  rocket: 0,
  eyes: 0,
})

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
  const from = repositoryById(view.world, source.repositoryId)
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
