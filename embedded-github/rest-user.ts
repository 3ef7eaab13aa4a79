// Accounts as GitHub's REST API shows them.

import type { components } from '@octokit/openapi-types'
import { accountById } from './accounts.ts'
import type { ServerContext } from './server-context.ts'
import type { Account, GitHubState } from './state.ts'
import { isoSecond } from './times.ts'

/** What presenting needs: the content, and where it is served. */
export type View = Pick<ServerContext, 'state' | 'url' | 'root'>

type SimpleUser = components['schemas']['simple-user']
type PrivateUser = components['schemas']['private-user']

/** An id as GitHub's GraphQL names things: opaque, stable, distinct per kind. */
export function nodeId(kind: string, id: number): string {
  return `${kind}_${Buffer.from(String(id)).toString('base64url')}`
}

export function simpleUser(view: View, account: Account): SimpleUser {
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
  const account = accountById(view.state, accountId)
  return account === null ? null : simpleUser(view, account)
}

/** Where GitHub always names an account: its account `ghost` stands for deleted ones. */
export function userOrGhost(view: View, accountId: number | null): SimpleUser {
  return userOrNull(view, accountId) ?? simpleUser(view, GHOST)
}

const GHOST: Account = { id: 10137, login: 'ghost', kind: 'User', createdAt: 0 }

/** The account's own view of itself. */
export function privateUser(view: View, account: Account): PrivateUser {
  const own = ownedBy(view.state, account)
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

const ownedBy = (state: GitHubState, account: Account) =>
  state.repositories.filter(({ owner }) => owner.toLowerCase() === account.login.toLowerCase())
