// Which tokens stand for which account.

import { createHash, randomBytes } from 'node:crypto'
import type { Account, GitHubState, Token, TokenPermissions } from './state.ts'

const EVERYTHING: TokenPermissions = {
  metadata: 'read',
  contents: 'write',
  issues: 'write',
  pull_requests: 'write',
}

/**
 * Lets a token stand for an account. Only its hash is stored, so that the token is in no file of ours.
 * @param token null = a fresh one, with the shape GitHub's have
 * @param permissions what differs from a token that may do everything
 * @returns the token
 */
export function grantToken(
  state: GitHubState,
  account: Account,
  token: string | null,
  permissions: Partial<TokenPermissions> = {},
): string {
  const granted = token ?? freshToken()
  const hash = hashOf(granted)
  const others = state.tokens.filter((known) => known.hash !== hash)
  const entry = { hash, accountId: account.id, permissions: { ...EVERYTHING, ...permissions } }
  state.tokens.splice(0, state.tokens.length, ...others, entry)
  return granted
}

export function revokeTokens(state: GitHubState, account: Account): void {
  const others = state.tokens.filter((known) => known.accountId !== account.id)
  state.tokens.splice(0, state.tokens.length, ...others)
}

export function findToken(state: GitHubState, token: string): Token | null {
  const hash = hashOf(token)
  return state.tokens.find((known) => known.hash === hash) ?? null
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

const freshToken = (): string => ['gh', 'p_', randomBytes(18).toString('hex')].join('')
