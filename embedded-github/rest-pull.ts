// Pull requests as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import type { Comparison } from './compare-commits.ts'
import { repositoryById } from './find-repository.ts'
import { labelsOf } from './labels.ts'
import { pullOids } from './pull-commits.ts'
import { htmlUrl, issueUrl } from './rest-issue.ts'
import { restLabel } from './rest-label.ts'
import { repositoryUrl, restRepository } from './rest-repository.ts'
import { nodeId, userOrGhost, userOrNull } from './rest-user.ts'
import { associationOf } from './roles.ts'
import type { ServerContext } from './server-context.ts'
import type { PullIssue, Repository } from './state.ts'
import { isoSecond, isoSecondOrNull } from './times.ts'

type SimplePull = components['schemas']['pull-request-simple']
type FullPull = components['schemas']['pull-request']

/** A pull request as lists show it. */
export function restSimplePull(
  context: ServerContext,
  repository: Repository,
  issue: PullIssue,
  viewerId: number | null,
): SimplePull & Pick<FullPull, 'user' | 'state' | 'head' | 'base'> {
  const { pull } = issue
  const { headOid } = pullOids(context, repository, issue)
  return {
    id: issue.id,
    node_id: nodeId('PR', issue.id),
    ...addresses(context, repository, issue, headOid),
    number: issue.number,
    state: issue.state,
    locked: false,
    active_lock_reason: null,
    title: issue.title,
    body: issue.body,
    user: userOrGhost(context, issue.authorId),
    author_association: associationOf(context.state, repository, issue.authorId),
    labels: labelsOf(repository, issue).map((label) => ({
      ...restLabel(context, repository, label),
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
    ...ends(context, repository, issue, viewerId),
  }
}

/** A pull request by itself. */
export function restPull(
  context: ServerContext,
  repository: Repository,
  issue: PullIssue,
  comparison: Comparison,
  viewerId: number | null,
): FullPull {
  const { pull } = issue
  const isOpen = issue.state === 'open'
  const isClean = comparison.mergedTree !== null
  return {
    ...restSimplePull(context, repository, issue, viewerId),
    merged: pull.mergedAt !== null,
    merged_by: userOrNull(context, pull.mergedById),
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
  context: ServerContext,
  repository: Repository,
  issue: PullIssue,
  viewerId: number | null,
): Pick<FullPull, 'head' | 'base'> {
  const { pull } = issue
  const { headOid, baseOid } = pullOids(context, repository, issue)
  const end = (of: Repository, branch: string, oid: string) => {
    const repo = restRepository(context, of, viewerId)
    return { label: `${of.owner}:${branch}`, ref: branch, sha: oid, user: repo.owner, repo }
  }
  const head = repositoryById(context.state, pull.headRepositoryId) ?? repository
  return {
    head: end(head, pull.headBranch, headOid),
    base: end(repository, pull.baseBranch, baseOid),
  }
}

function addresses(
  context: ServerContext,
  repository: Repository,
  issue: PullIssue,
  headOid: string,
) {
  const api = repositoryUrl(context, repository)
  const url = `${api}/pulls/${issue.number}`
  const page = htmlUrl(context, repository, issue)
  const links = {
    html: page,
    issue: issueUrl(context, repository, issue),
    comments: `${issueUrl(context, repository, issue)}/comments`,
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
