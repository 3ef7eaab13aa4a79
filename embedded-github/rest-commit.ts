// Commits, branches and changed files as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import type { ChangedFile } from './compare-commits.ts'
import type { CommitFacts } from './read-commits.ts'
import { repositoryUrl } from './rest-repository.ts'
import type { View } from './rest-user.ts'
import type { Repository } from './state.ts'

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
