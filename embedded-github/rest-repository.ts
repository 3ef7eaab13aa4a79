// Repositories as GitHub's REST API shows them.

import { pathToFileURL } from 'node:url'
import type { components } from '@octokit/openapi-types'
import { requireAccount } from './accounts.ts'
import { fullName, repositoryById } from './find-repository.ts'
import { nodeId, simpleUser, type View } from './rest-user.ts'
import { hasRole, roleOf } from './roles.ts'
import { gitPathOf } from './server-context.ts'
import type { Repository, Role } from './state.ts'
import { isoSecond } from './times.ts'

type RestRepository = components['schemas']['repository']
type FullRepository = components['schemas']['full-repository']

/** `${url}/repos/owner/name`. */
export function repositoryUrl(view: View, repository: Repository): string {
  return `${view.url}/repos/${fullName(repository)}`
}

/** @param viewerId the account whose permissions it shows; null = an anonymous request, which shows none */
export function restRepository(view: View, repository: Repository, viewerId: number | null) {
  const owner = requireAccount(view.state, repository.owner)
  const openIssues = repository.issues.filter(({ state }) => state === 'open').length
  const role = roleOf(view.state, repository, viewerId)
  return {
    id: repository.id,
    node_id: nodeId('R', repository.id),
    name: repository.name,
    full_name: fullName(repository),
    owner: simpleUser(view, owner),
    private: repository.isPrivate,
    visibility: repository.isPrivate ? 'private' : 'public',
    html_url: `${view.url}/${fullName(repository)}`,
    description: repository.description,
    fork: repository.forkOf !== null,
    ...addresses(view, repository),
    default_branch: repository.defaultBranch,
    homepage: null,
    language: null,
    license: null,
    mirror_url: null,
    size: 0,
    forks: 0,
    forks_count: 0,
    stargazers_count: 0,
    watchers: 0,
    watchers_count: 0,
    open_issues: openIssues,
    open_issues_count: openIssues,
    has_issues: repository.hasIssues,
    has_projects: false,
    has_wiki: false,
    has_pages: false,
    has_downloads: false,
    has_discussions: false,
    archived: repository.isArchived,
    disabled: repository.isDisabled,
    created_at: isoSecond(repository.createdAt),
    updated_at: isoSecond(repository.updatedAt),
    pushed_at: isoSecond(repository.updatedAt),
    ...(viewerId === null ? {} : { permissions: permissions(role) }),
  } satisfies RestRepository
}

export function restFullRepository(
  view: View,
  repository: Repository,
  viewerId: number | null,
): FullRepository {
  const parent = repository.forkOf === null ? null : repositoryById(view.state, repository.forkOf)
  const origin = parent === null ? null : restRepository(view, parent, viewerId)
  return {
    ...restRepository(view, repository, viewerId),
    ...(origin === null ? {} : { parent: origin, source: origin }),
    network_count: 0,
    subscribers_count: 0,
  }
}

export const permissions = (role: Role) => ({
  admin: hasRole(role, 'admin'),
  maintain: hasRole(role, 'maintain'),
  push: hasRole(role, 'write'),
  triage: hasRole(role, 'triage'),
  pull: hasRole(role, 'read'),
})

/** Addresses of a repository's parts. Only those in ROUTES answer; the rest are there as GitHub has them. */
function addresses(view: View, repository: Repository) {
  const url = repositoryUrl(view, repository)
  const gitUrl = pathToFileURL(gitPathOf(view, repository)).href
  return {
    url,
    clone_url: gitUrl,
    git_url: gitUrl,
    ssh_url: gitUrl,
    svn_url: `${view.url}/${fullName(repository)}`,
    archive_url: `${url}/{archive_format}{/ref}`,
    assignees_url: `${url}/assignees{/user}`,
    blobs_url: `${url}/git/blobs{/sha}`,
    branches_url: `${url}/branches{/branch}`,
    collaborators_url: `${url}/collaborators{/collaborator}`,
    comments_url: `${url}/comments{/number}`,
    commits_url: `${url}/commits{/sha}`,
    compare_url: `${url}/compare/{base}...{head}`,
    contents_url: `${url}/contents/{+path}`,
    contributors_url: `${url}/contributors`,
    deployments_url: `${url}/deployments`,
    downloads_url: `${url}/downloads`,
    events_url: `${url}/events`,
    forks_url: `${url}/forks`,
    git_commits_url: `${url}/git/commits{/sha}`,
    git_refs_url: `${url}/git/refs{/sha}`,
    git_tags_url: `${url}/git/tags{/sha}`,
    hooks_url: `${url}/hooks`,
    issue_comment_url: `${url}/issues/comments{/number}`,
    issue_events_url: `${url}/issues/events{/number}`,
    issues_url: `${url}/issues{/number}`,
    keys_url: `${url}/keys{/key_id}`,
    labels_url: `${url}/labels{/name}`,
    languages_url: `${url}/languages`,
    merges_url: `${url}/merges`,
    milestones_url: `${url}/milestones{/number}`,
    notifications_url: `${url}/notifications{?since,all,participating}`,
    pulls_url: `${url}/pulls{/number}`,
    releases_url: `${url}/releases{/id}`,
    stargazers_url: `${url}/stargazers`,
    statuses_url: `${url}/statuses/{sha}`,
    subscribers_url: `${url}/subscribers`,
    subscription_url: `${url}/subscription`,
    tags_url: `${url}/tags`,
    teams_url: `${url}/teams`,
    trees_url: `${url}/git/trees{/sha}`,
  }
}
