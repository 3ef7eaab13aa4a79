import { existsSync, lstatSync, unlinkSync } from 'node:fs'
import { ensureAccount } from './accounts.ts'
import { copyBare, createBare } from './bare-repository.ts'
import { findRepository, requireName, requireRepository } from './find-repository.ts'
import { takeSmallId } from './ids.ts'
import { refused } from './refused.ts'
import { forgetFormerName } from './rename-repository.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import type { Repository } from './state.ts'

export type RepositoryOrder = Readonly<{
  /** `owner/name`; the owner's account is made when there is none. */
  repo: string
  defaultBranch?: string
  description?: string
  isPrivate?: boolean
  ownerKind?: 'User' | 'Organization'
  /** A git repository on this machine whose branches it gets. */
  copyOf?: string
  /** `owner/name` of the repository here that it is a fork of. */
  forkOf?: string
}>

/** Makes a repository with its bare git repository. Faults: demo/refused, git/failed. */
export async function createRepository(
  context: ServerContext,
  order: RepositoryOrder,
): Promise<Repository> {
  const { owner, name } = requireName(order.repo)
  if (findRepository(context.state, owner, name) !== null)
    throw refused(`${order.repo} exists already`)
  const origin = order.forkOf === undefined ? null : requireRepository(context.state, order.forkOf)
  const now = context.clock.now()
  const account = ensureAccount(context.state, owner, now, order.ownerKind)
  const repository: Repository = {
    id: takeSmallId(context.state),
    owner: account.login,
    name,
    formerNames: [],
    defaultBranch: order.defaultBranch ?? origin?.defaultBranch ?? 'main',
    description: order.description ?? null,
    isPrivate: order.isPrivate ?? false,
    isArchived: false,
    isDisabled: false,
    hasIssues: true,
    forkOf: origin?.id ?? null,
    collaborators: [],
    labels: [],
    issues: [],
    nextNumber: 1,
    createdAt: now,
    updatedAt: now,
  }
  await createGit(context, repository, origin === null ? order.copyOf : gitPathOf(context, origin))
  forgetFormerName(context.state, repository)
  context.state.repositories.push(repository)
  return repository
}

async function createGit(
  context: ServerContext,
  repository: Repository,
  from?: string,
): Promise<void> {
  const path = gitPathOf(context, repository)
  // The link at the old path of a renamed repository gives way to the new repository.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) unlinkSync(path)
  if (existsSync(path)) throw refused(`${path} exists already`)
  if (from === undefined) await createBare(path, repository.defaultBranch)
  else await copyBare(path, from, repository.defaultBranch)
}
