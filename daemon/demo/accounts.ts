import { createHash, randomBytes } from 'node:crypto'
import { fault } from '../core/fault.ts'
import {
  type Account,
  type AccountKind,
  type Repository,
  ROLES,
  type Role,
  type Token,
  type TokenPermissions,
  takeSmallId,
  type World,
} from './world.ts'

/** Who is there from the start: the daemon's own account, and the human who merges. */
export const DEFAULT_ACCOUNTS = ['automation-bot', 'maintainer'] as const

const EVERYTHING: TokenPermissions = {
  metadata: 'read',
  contents: 'write',
  issues: 'write',
  pull_requests: 'write',
}

/** GitHub compares logins without case. */
export function findAccount(world: World, login: string): Account | null {
  const wanted = login.toLowerCase()
  return world.accounts.find((account) => account.login.toLowerCase() === wanted) ?? null
}

export function accountById(world: World, id: number | null): Account | null {
  if (id === null) return null
  return world.accounts.find((account) => account.id === id) ?? null
}

/** Faults: demo/refused for a login nobody has. */
export function requireAccount(world: World, login: string): Account {
  const found = findAccount(world, login)
  if (found === null) throw fault('demo/refused', { reason: `there is no account ${login}` })
  return found
}

/** The account of that login, made when there is none. */
export function ensureAccount(
  world: World,
  login: string,
  now: number,
  kind: AccountKind = 'User',
): Account {
  const found = findAccount(world, login)
  if (found !== null) return found
  const account = { id: takeSmallId(world), login, kind, createdAt: now }
  world.accounts.push(account)
  return account
}

/**
 * Lets a token stand for an account. Only its hash is kept, so that the token is in no file of ours.
 * @param token null = a fresh one, with the shape GitHub's have
 * @param permissions what differs from a token that may do everything
 * @returns the token
 */
export function grantToken(
  world: World,
  account: Account,
  token: string | null,
  permissions: Partial<TokenPermissions> = {},
): string {
  const granted = token ?? freshToken()
  const hash = hashOf(granted)
  const others = world.tokens.filter((known) => known.hash !== hash)
  const entry = { hash, accountId: account.id, permissions: { ...EVERYTHING, ...permissions } }
  world.tokens.splice(0, world.tokens.length, ...others, entry)
  return granted
}

export function revokeTokens(world: World, account: Account): void {
  const others = world.tokens.filter((known) => known.accountId !== account.id)
  world.tokens.splice(0, world.tokens.length, ...others)
}

export function findToken(world: World, token: string): Token | null {
  const hash = hashOf(token)
  return world.tokens.find((known) => known.hash === hash) ?? null
}

/** The role of an account in a repository; anybody may read a public one (GitHub docs, "Repository roles"). */
export function roleOf(world: World, repository: Repository, accountId: number | null): Role {
  const open: Role = repository.isPrivate ? 'none' : 'read'
  if (accountId === null) return open
  if (accountById(world, accountId)?.login.toLowerCase() === repository.owner.toLowerCase()) {
    return 'admin'
  }
  const given = repository.collaborators.find((entry) => entry.accountId === accountId)
  return given === undefined || !hasRole(given.role, open) ? open : given.role
}

/** Whether a role includes another. */
export function hasRole(role: Role, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted)
}

/** How GitHub describes an author's relation to a repository. */
export function associationOf(
  world: World,
  repository: Repository,
  accountId: number | null,
): 'OWNER' | 'COLLABORATOR' | 'NONE' {
  const account = accountById(world, accountId)
  if (account === null) return 'NONE'
  if (account.login.toLowerCase() === repository.owner.toLowerCase()) return 'OWNER'
  const isCollaborator = repository.collaborators.some(
    (entry) => entry.accountId === account.id && entry.role !== 'none',
  )
  return isCollaborator ? 'COLLABORATOR' : 'NONE'
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

const freshToken = (): string => ['gh', 'p_', randomBytes(18).toString('hex')].join('')
