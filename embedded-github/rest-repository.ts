// Users and repositories as GitHub's REST API shows them.

import { pathToFileURL } from 'node:url'
import type { components } from '@octokit/openapi-types'
import { accountById, hasRole, requireAccount, roleOf } from './accounts.ts'
import { gitPathOf, type Hub } from './hub.ts'
import { fullName, repositoryById } from './repositories.ts'
import { type Account, isoSecond, type Repository, type Role, type World } from './world.ts'

/** What presenting needs: the content, and where it is served. */
export type View = Pick<Hub, 'world' | 'url' | 'root'>

type SimpleUser = components['schemas']['simple-user']
type PrivateUser = components['schemas']['private-user']

/** An id as GitHub's GraphQL names things: opaque, stable, distinct per kind. */
export function nodeId(kind: string, id: number): string {
  return `${kind}_${Buffer.from(String(id)).toString('base64url')}`
}

function simpleUser(view: View, account: Account): SimpleUser {
  const url = `${view.url}/users/${account.login}`
  return {
    login: account.login,
    id: account.id,
    node_id: nodeId('U', account.id),
    avatar_url: `${view.url}/avatars/u/${account.id}`,
    gravatar_id: '',
    url,
    html_url: `${view.url}/${account.login}`,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type: account.kind,
    user_view_type: 'public',
    site_admin: false,
  }
}

/** null for an account that is gone. */
export function userOrNull(view: View, accountId: number | null): SimpleUser | null {
  const account = accountById(view.world, accountId)
  return account === null ? null : simpleUser(view, account)
}

/** For places where GitHub always names somebody: its account `ghost` stands for those who are gone. */
export function userOrGhost(view: View, accountId: number | null): SimpleUser {
  return userOrNull(view, accountId) ?? simpleUser(view, GHOST)
}

const GHOST: Account = { id: 10137, login: 'ghost', kind: 'User', createdAt: 0 }

/** The account's own view of itself. */
export function privateUser(view: View, account: Account): PrivateUser {
  const own = ownedBy(view.world, account)
  const privateCount = own.filter(({ isPrivate }) => isPrivate).length
  return {
    ...simpleUser(view, account),
    user_view_type: 'private',
    name: account.login,
    company: null,
    blog: '',
    location: null,
    email: null,
    hireable: null,
    bio: null,
    twitter_username: null,
    public_repos: own.length - privateCount,
    public_gists: 0,
    followers: 0,
    following: 0,
    created_at: isoSecond(account.createdAt),
    updated_at: isoSecond(account.createdAt),
    private_gists: 0,
    total_private_repos: privateCount,
    owned_private_repos: privateCount,
    disk_usage: 0,
    collaborators: 0,
    two_factor_authentication: true,
  }
}

const ownedBy = (world: World, account: Account) =>
  world.repositories.filter(({ owner }) => owner.toLowerCase() === account.login.toLowerCase())

type RestRepository = components['schemas']['repository']
type FullRepository = components['schemas']['full-repository']
type Permission = components['schemas']['repository-collaborator-permission']

/** `${url}/repos/owner/name`. */
export function repositoryUrl(view: View, repository: Repository): string {
  return `${view.url}/repos/${fullName(repository)}`
}

/** @param viewerId whose permissions it shows; null = nobody's */
export function restRepository(view: View, repository: Repository, viewerId: number | null) {
  const owner = requireAccount(view.world, repository.owner)
  const openIssues = repository.issues.filter(({ state }) => state === 'open').length
  const role = roleOf(view.world, repository, viewerId)
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
  const parent = repository.forkOf === null ? null : repositoryById(view.world, repository.forkOf)
  const origin = parent === null ? null : restRepository(view, parent, viewerId)
  return {
    ...restRepository(view, repository, viewerId),
    ...(origin === null ? {} : { parent: origin, source: origin }),
    network_count: 0,
    subscribers_count: 0,
  }
}

const permissions = (role: Role) => ({
  admin: hasRole(role, 'admin'),
  maintain: hasRole(role, 'maintain'),
  push: hasRole(role, 'write'),
  triage: hasRole(role, 'triage'),
  pull: hasRole(role, 'read'),
})

/** The older, coarser names that GitHub gives roles beside their own. */
const PERMISSION_OF = {
  none: 'none',
  read: 'read',
  triage: 'read',
  write: 'write',
  maintain: 'write',
  admin: 'admin',
} as const satisfies Record<Role, string>

export function restPermission(view: View, repository: Repository, account: Account): Permission {
  const role = roleOf(view.world, repository, account.id)
  const user = { ...simpleUser(view, account), role_name: role, permissions: permissions(role) }
  return { permission: PERMISSION_OF[role], role_name: role, user }
}

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
