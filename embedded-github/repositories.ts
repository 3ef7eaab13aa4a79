// Which repositories there are, how texts refer to their issues, and the bare git repository behind each.

import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type Fault, fault } from '../daemon/core/fault.ts'
import { parseRepositoryName } from '../daemon/core/issue-key.ts'
import { ensureAccount } from './accounts.ts'
import { git } from './git-commits.ts'
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

// Which issues a text refers to, and which it closes once merged (GitHub docs, "Linking a pull request to
// an issue", "Autolinked references and URLs"). Code is exempt, as on GitHub.

export type Reference = Readonly<{ owner: string; name: string; number: number }>

const CODE = /```[\s\S]*?(?:```|$)|~~~[\s\S]*?(?:~~~|$)|(`+)[^`][\s\S]*?\1/g
const COMMENT = /<!--[\s\S]*?(?:-->|$)/g
const REFERENCE = String.raw`(?:([A-Za-z0-9-]+)\/([A-Za-z0-9._-]+))?#([1-9][0-9]{0,9})\b`
const MENTION = new RegExp(String.raw`(?<![\w&/#-])${REFERENCE}`, 'g')
const CLOSING = new RegExp(
  String.raw`\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+${REFERENCE}`,
  'gi',
)

type Here = Readonly<{ owner: string; name: string }>

/** Every issue mentioned as `#1` or `owner/name#1`, each once. */
export function mentionedIssues(text: string, here: Here): readonly Reference[] {
  return referencesIn(text, MENTION, here)
}

/** Every issue that `Closes #1` and its kin name, each once. */
export function closedIssues(text: string, here: Here): readonly Reference[] {
  return referencesIn(text, CLOSING, here)
}

function referencesIn(text: string, pattern: RegExp, here: Here): readonly Reference[] {
  const prose = text.replaceAll(CODE, ' ').replaceAll(COMMENT, ' ')
  const found = [...prose.matchAll(pattern)].map(([, owner, name, number]) => ({
    owner: owner ?? here.owner,
    name: name ?? here.name,
    number: Number(number),
  }))
  const keys = found.map(({ owner, name, number }) => `${owner}/${name}#${number}`.toLowerCase())
  return found.filter((_, index) => keys.indexOf(keys[index] ?? '') === index)
}

// One real bare repository per repository of the embedded GitHub. Clients push to it and fetch from it by
// path, so its branches are read anew for every request: from the files of refs where that is enough,
// without a process.

// git-check-ref-format(1), the rules that matter for a name used in a path.
const FORBIDDEN = /[\0-\x20\x7f ~^:?*[\\]|\.\.|@\{|\/\/|\/\.|^[./-]|[./]$|\.lock(?:\/|$)/

/** Whether git could have a branch of that name. */
export function isBranchName(name: string): boolean {
  return name !== '' && name !== '@' && name.length <= 250 && !FORBIDDEN.test(name)
}

/** Makes an empty repository whose unborn branch is `defaultBranch`. Faults: git/failed. */
async function createBare(path: string, defaultBranch: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  await git(path, ['init', '--quiet', '--bare', '--template=', `--initial-branch=${defaultBranch}`])
  silenceGit(path)
}

/** Makes a repository with the branches of another, which may be any git repository on this machine. Faults: git/failed. */
async function copyBare(path: string, from: string, defaultBranch: string): Promise<void> {
  await createBare(path, defaultBranch)
  await git(path, [
    'fetch',
    '--quiet',
    '--no-write-fetch-head',
    '--',
    from,
    '+refs/heads/*:refs/heads/*',
  ])
}

/** No work behind the scenes: a repository at rest does not change. */
function silenceGit(path: string): void {
  appendFileSync(join(path, 'config'), '[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n')
}

/** Makes a branch the one that clones begin with. Faults: git/failed. */
export async function setDefaultBranch(path: string, branch: string): Promise<void> {
  await git(path, ['symbolic-ref', 'HEAD', `refs/heads/${branch}`])
}

/** The commit a branch points to, or null. No process is started. */
export function readBranch(path: string, branch: string): string | null {
  if (!isBranchName(branch)) return null
  const ref = `refs/heads/${branch}`
  const loose = readText(join(path, ref))?.trim() ?? ''
  return isOid(loose) ? loose : packedRef(path, ref)
}

/** Every branch with the commit it points to. Faults: git/failed. */
export async function listBranches(path: string): Promise<Readonly<Record<string, string>>> {
  const text = await git(path, [
    'for-each-ref',
    '--format=%(objectname) %(refname:strip=2)',
    'refs/heads/',
  ])
  const lines = text.split('\n').filter((line) => line !== '')
  return Object.fromEntries(lines.map((line) => [line.slice(41), line.slice(0, 40)]))
}

/** Points a branch to a commit; null removes it. Faults: git/failed. */
export async function setBranch(path: string, branch: string, oid: string | null): Promise<void> {
  const ref = `refs/heads/${branch}`
  await git(path, oid === null ? ['update-ref', '-d', ref] : ['update-ref', ref, oid])
}

function isOid(text: string): boolean {
  return /^[0-9a-f]{40}$/.test(text)
}

function packedRef(path: string, ref: string): string | null {
  const lines = readText(join(path, 'packed-refs'))?.split('\n') ?? []
  const line = lines.find(
    (candidate) => candidate.endsWith(` ${ref}`) && candidate.length === 41 + ref.length,
  )
  return line?.slice(0, 40) ?? null
}

/** null when there is no such file: absent, or a folder of that name. */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
