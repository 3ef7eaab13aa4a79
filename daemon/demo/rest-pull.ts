import type { components } from '@octokit/openapi-types'
import { associationOf } from './accounts.ts'
import type { Comparison } from './commit-facts.ts'
import { isoSecond, isoSecondOrNull } from './github-time.ts'
import type { Hub } from './hub.ts'
import { labelsOf } from './labels.ts'
import { pullOids } from './pulls.ts'
import { repositoryById } from './repositories.ts'
import { htmlUrl, issueUrl, restLabel } from './rest-issue.ts'
import { repositoryUrl, restRepository } from './rest-repository.ts'
import { nodeId, userOrGhost, userOrNull } from './rest-user.ts'
import type { PullIssue, Repository } from './world.ts'

type SimplePull = components['schemas']['pull-request-simple']
type FullPull = components['schemas']['pull-request']

/** A pull request as lists show it. */
export function restSimplePull(
  hub: Hub,
  repository: Repository,
  issue: PullIssue,
  viewerId: number | null,
): SimplePull & Pick<FullPull, 'user' | 'state' | 'head' | 'base'> {
  const { pull } = issue
  const { headOid } = pullOids(hub, repository, issue)
  return {
    id: issue.id,
    node_id: nodeId('PR', issue.id),
    ...addresses(hub, repository, issue, headOid),
    number: issue.number,
    state: issue.state,
    locked: false,
    active_lock_reason: null,
    title: issue.title,
    body: issue.body,
    user: userOrGhost(hub, issue.authorId),
    author_association: associationOf(hub.world, repository, issue.authorId),
    labels: labelsOf(repository, issue).map((label) => ({
      ...restLabel(hub, repository, label),
      description: label.description,
    })),
    assignee: null,
    assignees: [],
    requested_reviewers: [],
    requested_teams: [],
    milestone: null,
    auto_merge: null,
    draft: pull.isDraft,
    created_at: isoSecond(issue.createdAt),
    updated_at: isoSecond(issue.updatedAt),
    closed_at: isoSecondOrNull(issue.closedAt),
    merged_at: isoSecondOrNull(pull.mergedAt),
    merge_commit_sha: pull.mergeCommitOid,
    ...ends(hub, repository, issue, viewerId),
  }
}

/** A pull request by itself. */
export function restPull(
  hub: Hub,
  repository: Repository,
  issue: PullIssue,
  comparison: Comparison,
  viewerId: number | null,
): FullPull {
  const { pull } = issue
  const isOpen = issue.state === 'open'
  const isClean = comparison.mergedTree !== null
  return {
    ...restSimplePull(hub, repository, issue, viewerId),
    merged: pull.mergedAt !== null,
    merged_by: userOrNull(hub, pull.mergedById),
    mergeable: isOpen ? isClean : null,
    rebaseable: isOpen ? isClean : null,
    mergeable_state: isOpen ? (isClean ? 'clean' : 'dirty') : 'unknown',
    maintainer_can_modify: false,
    comments: issue.comments.length,
    review_comments: 0,
    commits: comparison.commits.length,
    changed_files: comparison.files.length,
    additions: comparison.files.reduce((sum, file) => sum + file.additions, 0),
    deletions: comparison.files.reduce((sum, file) => sum + file.deletions, 0),
  }
}

/** Head and base. */
function ends(
  hub: Hub,
  repository: Repository,
  issue: PullIssue,
  viewerId: number | null,
): Pick<FullPull, 'head' | 'base'> {
  const { pull } = issue
  const { headOid, baseOid } = pullOids(hub, repository, issue)
  const end = (of: Repository, branch: string, oid: string) => {
    const repo = restRepository(hub, of, viewerId)
    return { label: `${of.owner}:${branch}`, ref: branch, sha: oid, user: repo.owner, repo }
  }
  const head = repositoryById(hub.world, pull.headRepositoryId) ?? repository
  return {
    head: end(head, pull.headBranch, headOid),
    base: end(repository, pull.baseBranch, baseOid),
  }
}

function addresses(hub: Hub, repository: Repository, issue: PullIssue, headOid: string) {
  const api = repositoryUrl(hub, repository)
  const url = `${api}/pulls/${issue.number}`
  const page = htmlUrl(hub, repository, issue)
  const links = {
    html: page,
    issue: issueUrl(hub, repository, issue),
    comments: `${issueUrl(hub, repository, issue)}/comments`,
    review_comments: `${url}/comments`,
    review_comment: `${api}/pulls/comments{/number}`,
    commits: `${url}/commits`,
    statuses: `${api}/statuses/${headOid}`,
  }
  const link = (href: string) => ({ href })
  return {
    url,
    html_url: page,
    diff_url: `${page}.diff`,
    patch_url: `${page}.patch`,
    issue_url: links.issue,
    comments_url: links.comments,
    review_comments_url: links.review_comments,
    review_comment_url: links.review_comment,
    commits_url: links.commits,
    statuses_url: links.statuses,
    _links: {
      self: link(url),
      html: link(links.html),
      issue: link(links.issue),
      comments: link(links.comments),
      review_comments: link(links.review_comments),
      review_comment: link(links.review_comment),
      commits: link(links.commits),
      statuses: link(links.statuses),
    },
  }
}
