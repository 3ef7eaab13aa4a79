// Who there is.

import { fault } from '../daemon/core/fault.ts'
import { takeSmallId } from './ids.ts'
import type { Account, AccountKind, GitHubState } from './state.ts'

/** Who is there from the start: the daemon's own account, and the human who merges. */
export const DEFAULT_ACCOUNTS = ['automation-bot', 'maintainer'] as const

/** GitHub compares logins without case. */
export function findAccount(state: GitHubState, login: string): Account | null {
  const lower = login.toLowerCase()
  return state.accounts.find((account) => account.login.toLowerCase() === lower) ?? null
}

export function accountById(state: GitHubState, id: number | null): Account | null {
  if (id === null) return null
  return state.accounts.find((account) => account.id === id) ?? null
}

/** Faults: demo/refused for a login that no account has. */
export function requireAccount(state: GitHubState, login: string): Account {
  const found = findAccount(state, login)
  if (found === null) throw fault('demo/refused', { reason: `there is no account ${login}` })
  return found
}

/** The account of that login, made when there is none. */
export function ensureAccount(
  state: GitHubState,
  login: string,
  now: number,
  kind: AccountKind = 'User',
): Account {
  const found = findAccount(state, login)
  if (found !== null) return found
  const account = { id: takeSmallId(state), login, kind, createdAt: now }
  state.accounts.push(account)
  return account
}

/** How an account signs its commits. */
export function identityOf(account: Account): Readonly<{ name: string; email: string }> {
  const { login, id } = account
  return { name: login, email: `${id}+${login}@users.noreply.github.com` }
}
