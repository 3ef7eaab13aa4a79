import { existsSync, lstatSync, mkdirSync, renameSync, symlinkSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Fault, fault } from '../core/fault.ts'
import { parseRepositoryName } from '../core/issue-key.ts'
import { ensureAccount } from './accounts.ts'
import { copyBare, createBare } from './bare-repository.ts'
import { gitPathOf, type Hub } from './hub.ts'
import { type Issue, type Repository, takeSmallId, type World } from './world.ts'

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

/** By its present name; GitHub compares names without case. */
export function findRepository(world: World, owner: string, name: string): Repository | null {
  const wanted = `${owner}/${name}`.toLowerCase()
  return (
    world.repositories.find((candidate) => fullName(candidate).toLowerCase() === wanted) ?? null
  )
}

/** By a name it had before. */
export function findRenamed(world: World, owner: string, name: string): Repository | null {
  const wanted = `${owner}/${name}`.toLowerCase()
  return world.repositories.find(({ formerNames }) => formerNames.includes(wanted)) ?? null
}

export function repositoryById(world: World, id: number): Repository | null {
  return world.repositories.find((candidate) => candidate.id === id) ?? null
}

/** Numbers rise by one from 1, so that the place of an issue follows from its number. */
export function findIssue(repository: Repository, number: number): Issue | null {
  return repository.issues[number - 1] ?? null
}

export function fullName(repository: Readonly<{ owner: string; name: string }>): string {
  return `${repository.owner}/${repository.name}`
}

/** Makes a repository with its bare git repository. Faults: demo/refused, git/failed. */
export async function createRepository(hub: Hub, order: RepositoryOrder): Promise<Repository> {
  const { owner, name } = requireName(order.repo)
  if (findRepository(hub.world, owner, name) !== null) throw refused(`${order.repo} exists already`)
  const origin = order.forkOf === undefined ? null : requireRepository(hub.world, order.forkOf)
  const now = hub.clock.now()
  const account = ensureAccount(hub.world, owner, now, order.ownerKind)
  const repository: Repository = {
    id: takeSmallId(hub.world),
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
  await createGit(hub, repository, origin === null ? order.copyOf : gitPathOf(hub, origin))
  forgetFormerName(hub.world, repository)
  hub.world.repositories.push(repository)
  return repository
}

async function createGit(hub: Hub, repository: Repository, from?: string): Promise<void> {
  const path = gitPathOf(hub, repository)
  // The link that a renamed repository left here gives way to the new one.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) unlinkSync(path)
  if (existsSync(path)) throw refused(`${path} exists already`)
  if (from === undefined) await createBare(path, repository.defaultBranch)
  else await copyBare(path, from, repository.defaultBranch)
}

/** Renames or transfers a repository; API and git paths of its old name lead to the new one. Faults: demo/refused. */
export function renameRepository(hub: Hub, repository: Repository, to: string): void {
  const { owner, name } = requireName(to)
  if (findRepository(hub.world, owner, name) !== null) throw refused(`${to} exists already`)
  const oldPath = gitPathOf(hub, repository)
  repository.formerNames.push(fullName(repository).toLowerCase())
  repository.owner = ensureAccount(hub.world, owner, hub.clock.now()).login
  repository.name = name
  repository.updatedAt = hub.clock.now()
  forgetFormerName(hub.world, repository)
  const newPath = gitPathOf(hub, repository)
  mkdirSync(dirname(newPath), { recursive: true })
  renameSync(oldPath, newPath)
  symlinkSync(newPath, oldPath)
}

/** A name in use redirects nobody any more. */
function forgetFormerName(world: World, repository: Repository): void {
  const taken = fullName(repository).toLowerCase()
  for (const { formerNames } of world.repositories) {
    const at = formerNames.indexOf(taken)
    if (at >= 0) formerNames.splice(at, 1)
  }
}

/** Faults: demo/refused for a repository that is not there. */
export function requireRepository(world: World, repo: string): Repository {
  const { owner, name } = requireName(repo)
  const found = findRepository(world, owner, name)
  if (found === null) throw refused(`there is no repository ${repo}`)
  return found
}

/** Faults: demo/refused for an issue that is not there. */
export function requireIssue(repository: Repository, number: number): Issue {
  const found = findIssue(repository, number)
  if (found === null) throw refused(`${fullName(repository)} has no issue ${number}`)
  return found
}

function requireName(repo: string) {
  const name = parseRepositoryName(repo)
  if (name === null) throw refused(`"${repo}" is no repository name`)
  return name
}

/** What an operator asked for and cannot have. */
export const refused = (reason: string): Fault => fault('demo/refused', { reason })
