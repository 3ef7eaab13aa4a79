import { findAccount, hasRole, roleOf } from './accounts.ts'
import type { ApiRequest } from './api-request.ts'
import { readBranch } from './bare-repository.ts'
import { readCommits } from './commit-facts.ts'
import { gitPathOf, type Hub } from './hub.ts'
import { listReply } from './pagination.ts'
import { describeWindow, windowOf } from './rate-limits.ts'
import { notFound, ok, type Reply, requiresAuthentication } from './replies.ts'
import { fullName } from './repositories.ts'
import { restBranch, restRef } from './rest-commit.ts'
import { restFullRepository, restPermission, restRepository } from './rest-repository.ts'
import { privateUser } from './rest-user.ts'
import type { Repository } from './world.ts'

export function getRepository(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  return ok(restFullRepository(hub, repository, request.viewerId))
}

export function getPermission(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  const account = findAccount(hub.world, request.params['username'] ?? '')
  return account === null ? notFound() : ok(restPermission(hub, repository, account))
}

export async function getBranch(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
): Promise<Reply> {
  const name = request.params['branch'] ?? ''
  const path = gitPathOf(hub, repository)
  const oid = readBranch(path, name)
  const [commit] = oid === null ? [] : await readCommits(path, [oid])
  if (commit === undefined) return notFound('Branch not found')
  return ok(restBranch(hub, repository, name, commit))
}

/** Branches only: the embedded GitHub has no tags. */
export function getRef(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  const ref = request.params['ref'] ?? ''
  const name = ref.startsWith('heads/') ? ref.slice('heads/'.length) : ''
  const oid = readBranch(gitPathOf(hub, repository), name)
  return oid === null ? notFound() : ok(restRef(hub, repository, `refs/${ref}`, oid))
}

export function getUser(hub: Hub, request: ApiRequest): Reply {
  const account = hub.world.accounts.find(({ id }) => id === request.viewerId)
  return account === undefined ? requiresAuthentication() : ok(privateUser(hub, account))
}

/** Those the account owns or collaborates in. */
export function listOwnRepositories(hub: Hub, request: ApiRequest): Reply {
  const { viewerId, query } = request
  if (viewerId === null) return requiresAuthentication()
  const sign = query.get('direction') === 'desc' ? -1 : 1
  const own = hub.world.repositories
    .filter((repository) => isOwn(hub, repository, viewerId))
    .sort((a, b) => sign * fullName(a).localeCompare(fullName(b), 'en'))
  return listReply(request, own, (repository) => restRepository(hub, repository, viewerId))
}

function isOwn(hub: Hub, repository: Repository, viewerId: number): boolean {
  const isCollaborator = repository.collaborators.some(({ accountId }) => accountId === viewerId)
  const role = roleOf(hub.world, repository, viewerId)
  return isCollaborator ? hasRole(role, 'read') : role === 'admin'
}

/** Asking does not count. */
export function getRateLimit(hub: Hub, request: ApiRequest): Reply {
  const core = describeWindow(windowOf(hub.limits, request.viewerId, request.now))
  const search = { limit: 30, used: 0, remaining: 30, reset: core.reset }
  return ok({ resources: { core, search }, rate: core })
}
