// Who there is, what they may do, and how often: accounts and tokens, roles, rate limits.

import { createHash, randomBytes } from 'node:crypto'
import { fault } from '../daemon/core/fault.ts'
import {
  type ApiRequest,
  forbidden,
  headerOf,
  type Incoming,
  notAccessible,
  notFound,
  type Reply,
  requiresAuthentication,
} from './api-messages.ts'
import type { Hub, RateLimits, RateWindow } from './hub.ts'
import {
  type Account,
  type AccountKind,
  type Repository,
  ROLES,
  type Role,
  seconds,
  type Token,
  type TokenLevel,
  type TokenPermissions,
  type TokenScope,
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

function findToken(world: World, token: string): Token | null {
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

/** Who sends a request. */
export type Viewer =
  | Readonly<{ kind: 'anonymous' }>
  | Readonly<{ kind: 'known'; account: Account; token: Token }>
  | Readonly<{ kind: 'rejected' }>

/** What an endpoint asks of its caller: the token's permission, and the account's role in the repository. */
export type Needs = Readonly<{ scope: TokenScope; level: TokenLevel; role: Role }>

/** Reads the Authorization header: `Bearer`, `token`, or basic authentication with the token as password. */
export function authenticate(hub: Hub, incoming: Incoming): Viewer {
  const header = headerOf(incoming, 'authorization')
  if (header === null) return { kind: 'anonymous' }
  const [scheme = '', value = ''] = header.trim().split(/\s+/)
  const token = findToken(hub.world, scheme.toLowerCase() === 'basic' ? password(value) : value)
  const account = accountById(hub.world, token?.accountId ?? null)
  if (token === null || account === null) return { kind: 'rejected' }
  return { kind: 'known', account, token }
}

const password = (basic: string): string => {
  const decoded = Buffer.from(basic, 'base64').toString('utf8')
  return decoded.slice(decoded.indexOf(':') + 1)
}

export function accountIdOf(viewer: Viewer): number | null {
  return viewer.kind === 'known' ? viewer.account.id : null
}

/** Why a repository does not take this request, or null. What one may not see is not there. */
export function refusal(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  needs: Needs,
): Reply | null {
  const role = roleOf(hub.world, repository, request.viewerId)
  const isWrite = request.method !== 'GET'
  if (!hasRole(role, 'read')) return notFound()
  if (isWrite && request.viewerId === null) return requiresAuthentication()
  if (repository.isDisabled) return forbidden('Repository access blocked')
  if (isWrite && repository.isArchived) {
    return forbidden('Repository was archived so is read-only.')
  }
  const isAllowed = hasRole(role, needs.role) && mayByToken(request, repository, needs)
  return isAllowed ? null : notAccessible(`${needs.scope}=${needs.level}`)
}

/** Public repositories can be read by any token. */
function mayByToken(request: ApiRequest, repository: Repository, needs: Needs): boolean {
  if (request.token === null) return true
  if (needs.level === 'read' && !repository.isPrivate) return true
  const granted = request.token.permissions[needs.scope]
  return granted === 'write' || granted === needs.level
}

/** Whether the caller has a role in a repository. */
export function mayAct(
  hub: Hub,
  request: Pick<ApiRequest, 'viewerId'>,
  repository: Repository,
  role: Role,
): boolean {
  return hasRole(roleOf(hub.world, repository, request.viewerId), role)
}

// GitHub's primary rate limit: so many requests per account and hour, 304 answers not counted
// (GitHub docs, "Rate limits for the REST API"). Kept in memory: a restarted server begins a new hour.

const WINDOW_MS = 3_600_000
const LIMIT_WITH_TOKEN = 5000
const LIMIT_WITHOUT_TOKEN = 60

/** The running window of an account; a new one when the last has ended. */
export function windowOf(limits: RateLimits, accountId: number | null, now: number): RateWindow {
  const key = accountId ?? 0
  const known = limits.get(key)
  if (known !== undefined && now < known.resetAt) return known
  const limit = known?.limit ?? (accountId === null ? LIMIT_WITHOUT_TOKEN : LIMIT_WITH_TOKEN)
  const fresh = { limit, used: 0, resetAt: now + WINDOW_MS }
  limits.set(key, fresh)
  return fresh
}

export function isExhausted(window: RateWindow): boolean {
  return window.used >= window.limit
}

export function countRequest(window: RateWindow): void {
  window.used = Math.min(window.limit, window.used + 1)
}

/** As `/rate_limit` shows it. */
export function describeWindow(window: RateWindow) {
  return {
    limit: window.limit,
    used: window.used,
    remaining: Math.max(0, window.limit - window.used),
    reset: seconds(window.resetAt),
  }
}

export function rateHeaders(window: RateWindow): Readonly<Record<string, string>> {
  const shown = describeWindow(window)
  return {
    'X-RateLimit-Limit': String(shown.limit),
    'X-RateLimit-Remaining': String(shown.remaining),
    'X-RateLimit-Reset': String(shown.reset),
    'X-RateLimit-Used': String(shown.used),
    'X-RateLimit-Resource': 'core',
  }
}
