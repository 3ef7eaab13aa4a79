// Issues as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import { fullName } from './find-repository.ts'
import { labelsOf } from './labels.ts'
import { restLabel } from './rest-label.ts'
import { repositoryUrl } from './rest-repository.ts'
import { nodeId, userOrNull, type View } from './rest-user.ts'
import { associationOf } from './roles.ts'
import type { Issue, Repository } from './state.ts'
import { isoSecond, isoSecondOrNull } from './times.ts'

type RestIssue = components['schemas']['issue']

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
    author_association: associationOf(view.state, repository, issue.authorId),
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

export const noReactions = (url: string) => ({
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
