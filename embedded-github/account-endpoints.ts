// The endpoints of the sender.

import type { Endpoint } from './endpoint.ts'
import { fullName } from './find-repository.ts'
import { listReply } from './list-pages.ts'
import { describeWindow, windowOf } from './rate-limits.ts'
import { ok, requiresAuthentication } from './replies.ts'
import { restRepository } from './rest-repository.ts'
import { privateUser } from './rest-user.ts'
import { hasRole, roleOf } from './roles.ts'
import type { ServerContext } from './server-context.ts'
import type { Repository } from './state.ts'

export const getUser: Endpoint = (context, request) => {
  const account = context.state.accounts.find(({ id }) => id === request.viewerId)
  return account === undefined ? requiresAuthentication() : ok(privateUser(context, account))
}

/** Those the account owns or collaborates in. */
export const listOwnRepositories: Endpoint = (context, request) => {
  const { viewerId, query } = request
  if (viewerId === null) return requiresAuthentication()
  const sign = query.get('direction') === 'desc' ? -1 : 1
  const own = context.state.repositories
    .filter((repository) => isOwn(context, repository, viewerId))
    .sort((a, b) => sign * fullName(a).localeCompare(fullName(b), 'en'))
  return listReply(request, own, (repository) => restRepository(context, repository, viewerId))
}

function isOwn(context: ServerContext, repository: Repository, viewerId: number): boolean {
  const isCollaborator = repository.collaborators.some(({ accountId }) => accountId === viewerId)
  const role = roleOf(context.state, repository, viewerId)
  return isCollaborator ? hasRole(role, 'read') : role === 'admin'
}

/** Asking does not count. */
export const getRateLimit: Endpoint = (context, request) => {
  const core = describeWindow(windowOf(context.limits, request.viewerId, request.now))
  const search = { limit: 30, used: 0, remaining: 30, reset: core.reset }
  return ok({ resources: { core, search }, rate: core })
}
