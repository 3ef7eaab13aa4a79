// Pull requests, commits, changed files and branches as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import { associationOf } from './accounts.ts'
import type { ChangedFile, CommitFacts, Comparison } from './git-commits.ts'
import type { Hub } from './hub.ts'
import { labelsOf } from './issues.ts'
import { pullOids } from './pulls.ts'
import { repositoryById } from './repositories.ts'
import { htmlUrl, issueUrl, restLabel } from './rest-issue.ts'
import {
  nodeId,
  repositoryUrl,
  restRepository,
  userOrGhost,
  userOrNull,
  type View,
} from './rest-repository.ts'
import { isoSecond, isoSecondOrNull, type PullIssue, type Repository } from './world.ts'

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

type RestCommit = components['schemas']['commit']
type RestBranch = components['schemas']['branch-with-protection']
type RestRef = components['schemas']['git-ref']
type RestFile = components['schemas']['diff-entry']

/** Accounts are not matched by mail address: GitHub shows null then. */
export function restCommit(view: View, repository: Repository, commit: CommitFacts): RestCommit {
  const api = repositoryUrl(view, repository)
  const url = `${api}/commits/${commit.oid}`
  const htmlUrl = commitPage(view, repository, commit.oid)
  return {
    sha: commit.oid,
    node_id: `C_${commit.oid}`,
    url,
    html_url: htmlUrl,
    comments_url: `${url}/comments`,
    commit: {
      url: `${api}/git/commits/${commit.oid}`,
      author: commit.author,
      committer: commit.committer,
      message: commit.message,
      comment_count: 0,
      tree: { sha: commit.treeOid, url: `${api}/git/trees/${commit.treeOid}` },
      verification: {
        verified: false,
        reason: 'unsigned',
        payload: null,
        signature: null,
        verified_at: null,
      },
    },
    author: null,
    committer: null,
    parents: commit.parents.map((oid) => ({
      sha: oid,
      url: `${api}/commits/${oid}`,
      html_url: commitPage(view, repository, oid),
    })),
  }
}

const commitPage = (view: View, repository: Repository, oid: string): string =>
  `${view.url}/${repository.owner}/${repository.name}/commit/${oid}`

export function restBranch(
  view: View,
  repository: Repository,
  name: string,
  commit: CommitFacts,
): RestBranch {
  const api = repositoryUrl(view, repository)
  const self = `${api}/branches/${encodeURIComponent(name)}`
  return {
    name,
    commit: restCommit(view, repository, commit),
    _links: {
      self,
      html: `${view.url}/${repository.owner}/${repository.name}/tree/${name}`,
    },
    protected: false,
    protection: {
      enabled: false,
      required_status_checks: { enforcement_level: 'off', contexts: [], checks: [] },
    },
    protection_url: `${self}/protection`,
  }
}

/** @param ref `refs/heads/main` */
export function restRef(view: View, repository: Repository, ref: string, oid: string): RestRef {
  const api = repositoryUrl(view, repository)
  return {
    ref,
    node_id: `REF_${Buffer.from(ref).toString('base64url')}`,
    url: `${api}/git/${ref}`,
    object: { type: 'commit', sha: oid, url: `${api}/git/commits/${oid}` },
  }
}

/** Without the text of the difference: clients that want it have git. */
export function restFile(
  view: View,
  repository: Repository,
  headOid: string,
  file: ChangedFile,
): RestFile {
  const api = repositoryUrl(view, repository)
  const page = `${view.url}/${repository.owner}/${repository.name}`
  const path = encodeURIComponent(file.path)
  return {
    sha: file.blobOid,
    filename: file.path,
    status: file.status,
    additions: file.additions,
    deletions: file.deletions,
    changes: file.additions + file.deletions,
    blob_url: `${page}/blob/${headOid}/${path}`,
    raw_url: `${page}/raw/${headOid}/${path}`,
    contents_url: `${api}/contents/${path}?ref=${headOid}`,
  }
}
