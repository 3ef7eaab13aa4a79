// The endpoints of repositories and their branches.

import { findAccount } from './accounts.ts'
import { readBranch } from './branches.ts'
import type { RepositoryEndpoint } from './endpoint.ts'
import { readCommits } from './read-commits.ts'
import { notFound, ok } from './replies.ts'
import { restBranch, restRef } from './rest-commit.ts'
import { restPermission } from './rest-permission.ts'
import { restFullRepository } from './rest-repository.ts'
import { gitPathOf } from './server-context.ts'

export const getRepository: RepositoryEndpoint = (context, request, repository) => {
  return ok(restFullRepository(context, repository, request.viewerId))
}

export const getPermission: RepositoryEndpoint = (context, request, repository) => {
  const account = findAccount(context.state, request.params['username'] ?? '')
  return account === null ? notFound() : ok(restPermission(context, repository, account))
}

export const getBranch: RepositoryEndpoint = async (context, request, repository) => {
  const name = request.params['branch'] ?? ''
  const path = gitPathOf(context, repository)
  const oid = readBranch(path, name)
  const [commit] = oid === null ? [] : await readCommits(path, [oid])
  if (commit === undefined) return notFound('Branch not found')
  return ok(restBranch(context, repository, name, commit))
}

/** Branches only: the embedded GitHub has no tags. */
export const getRef: RepositoryEndpoint = (context, request, repository) => {
  const ref = request.params['ref'] ?? ''
  const name = ref.startsWith('heads/') ? ref.slice('heads/'.length) : ''
  const oid = readBranch(gitPathOf(context, repository), name)
  return oid === null ? notFound() : ok(restRef(context, repository, `refs/${ref}`, oid))
}
