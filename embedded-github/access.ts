// Who sends a request, and whether it is let through.

import { accountById } from './accounts.ts'
import { type ApiRequest, headerOf, type Incoming } from './api-request.ts'
import {
  forbidden,
  notAccessible,
  notFound,
  type Reply,
  requiresAuthentication,
} from './replies.ts'
import { hasRole, roleOf } from './roles.ts'
import type { ServerContext } from './server-context.ts'
import type { Account, Repository, Role, Token, TokenLevel, TokenScope } from './state.ts'
import { findToken } from './tokens.ts'

/** Who sends a request. */
export type Viewer =
  | Readonly<{ kind: 'anonymous' }>
  | Readonly<{ kind: 'known'; account: Account; token: Token }>
  | Readonly<{ kind: 'rejected' }>

/** What an endpoint asks of its caller: the token's permission, and the account's role in the repository. */
export type Needs = Readonly<{ scope: TokenScope; level: TokenLevel; role: Role }>

/** Reads the Authorization header: `Bearer`, `token`, or basic authentication with the token as password. */
export function authenticate(context: ServerContext, incoming: Incoming): Viewer {
  const header = headerOf(incoming, 'authorization')
  if (header === null) return { kind: 'anonymous' }
  const [scheme = '', value = ''] = header.trim().split(/\s+/)
  const token = findToken(context.state, scheme.toLowerCase() === 'basic' ? password(value) : value)
  const account = accountById(context.state, token?.accountId ?? null)
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
  context: ServerContext,
  request: ApiRequest,
  repository: Repository,
  needs: Needs,
): Reply | null {
  const role = roleOf(context.state, repository, request.viewerId)
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
  context: ServerContext,
  request: Pick<ApiRequest, 'viewerId'>,
  repository: Repository,
  role: Role,
): boolean {
  return hasRole(roleOf(context.state, repository, request.viewerId), role)
}
