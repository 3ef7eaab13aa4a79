// What operators do with accounts and tokens. People are named by their login; an account is made when its
// login acts for the first time.

import { ensureAccount } from './accounts.ts'
import type { ServerContext } from './server-context.ts'
import type { AccountKind, TokenPermissions } from './state.ts'
import { grantToken, revokeTokens } from './tokens.ts'

/** The login that acts when a control verb does not name one. */
export const OPERATOR = 'maintainer'

/** The account that acts, and when. */
export function byActor(context: ServerContext, login: string = OPERATOR) {
  const now = context.clock.now()
  const account = ensureAccount(context.state, login, now)
  return { account, actorId: account.id, now }
}

export function createAccount(
  context: ServerContext,
  order: Readonly<{ login: string; kind?: AccountKind }>,
): Readonly<{ id: number }> {
  return { id: ensureAccount(context.state, order.login, context.clock.now(), order.kind).id }
}

/** @returns the token given, or a fresh one; it may do everything but what `permissions` takes away */
export function createToken(
  context: ServerContext,
  order: Readonly<{ login: string; token?: string; permissions?: Partial<TokenPermissions> }>,
): Readonly<{ token: string }> {
  const { account } = byActor(context, order.login)
  return { token: grantToken(context.state, account, order.token ?? null, order.permissions) }
}

export function revokeToken(context: ServerContext, order: Readonly<{ login: string }>): void {
  revokeTokens(context.state, byActor(context, order.login).account)
}
