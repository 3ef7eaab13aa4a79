import { join } from 'node:path'
import { type Fault, fault, isFault } from '../core/fault.ts'
import { formatRepository, type RepositoryName } from '../core/issue-key.ts'
import type { OperatorClone } from '../core/ports.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import { cloneUrl, originHost, provesRepository, rewriteUrl, showUrl } from './origin.ts'
import type { Setting } from './profile.ts'
import { readOperatorSettings } from './remote-access.ts'
import type { RunGit } from './run-git.ts'

export type CloneDeps = Readonly<{
  runGit: RunGit
  /** `<workdirBase>/<owner>/<name>` is the clone of a repository. */
  workdirBase: string
  apiBase: string
}>

/** A proved clone, and where its repository lies. */
export type InspectedClone = OperatorClone & Readonly<{ gitDirectory: string }>

type Findings = Readonly<{ originUrl: string; shallowOrPartial: boolean }>

const MAX_CONFIG_BYTES = 64 * 1024

/**
 * Proves that the operator's clone of a repository is there and that its origin is that repository
 * (design §8, R§6.1). It may be dirty, bare, a linked worktree, or reached through a link. The usual
 * clone is read without starting git; whatever is unusual is asked of git.
 * Faults: clone/missing, clone/not-a-repository, clone/no-origin, clone/wrong-origin, git/failed.
 */
export async function inspectClone(
  deps: CloneDeps,
  repository: RepositoryName,
): Promise<InspectedClone> {
  const path = join(deps.workdirBase, repository.owner, repository.name)
  if (realPath(path) === null) throw cloneFault('clone/missing', deps, repository, path)
  const gitDirectory = gitDirectoryOf(path)
  if (gitDirectory === null) throw cloneFault('clone/not-a-repository', deps, repository, path)
  const findings =
    readSimply(gitDirectory, (url) => provesRepository(url, repository, deps.apiBase)) ??
    (await askGit(deps, repository, path, gitDirectory))
  return { path, gitDirectory, ...findings }
}

/**
 * Where the repository of a clone lies; null = nowhere. Never searched for in the folders above: a
 * plain folder inside another repository would be taken for that.
 */
export function gitDirectoryOf(path: string): string | null {
  const inside = join(path, '.git')
  if (fileStatus(inside) !== null) return inside
  const isBare = fileStatus(join(path, 'HEAD')) !== null && isFolder(join(path, 'objects'))
  return isBare ? path : null
}

/** Only ever a positive verdict; null = ask git. */
function readSimply(gitDirectory: string, proves: (url: string) => boolean): Findings | null {
  const inside = (name: string): string => join(gitDirectory, name)
  const isUsual =
    isFolder(gitDirectory) &&
    isFolder(inside('objects')) &&
    isFolder(inside('refs')) &&
    fileStatus(inside('HEAD'))?.kind === 'file' &&
    fileStatus(inside('config'))?.kind === 'file' &&
    fileStatus(inside('commondir')) === null
  const text = isUsual ? readFileBounded(inside('config'), MAX_CONFIG_BYTES) : null
  const config = text === null ? null : parseSimpleConfig(text.toString())
  if (config === null || config.has('remote.origin.pushurl')) return null
  const [originUrl] = config.get('remote.origin.url') ?? []
  if (originUrl === undefined || !proves(originUrl)) return null
  const isPartial = [...config.keys()].some(isPartialKey)
  return { originUrl, shallowOrPartial: isPartial || fileStatus(inside('shallow')) !== null }
}

async function askGit(
  deps: CloneDeps,
  repository: RepositoryName,
  path: string,
  gitDirectory: string,
): Promise<Findings> {
  const ask = async (args: readonly [string, ...string[]]): Promise<readonly string[]> => {
    const operation = `${args[0]} in ${path}`
    const call = { profile: 'operator', operation, args, gitDirectory } as const
    return (await deps.runGit(call)).stdout.toString().split('\n').slice(0, -1)
  }
  const shallow = await ask(['rev-parse', '--is-shallow-repository']).catch((error: unknown) => {
    const isNone = isFault(error) && /not a git repository/i.test(error.message)
    throw isNone ? cloneFault('clone/not-a-repository', deps, repository, path) : error
  })
  const settings = await readOperatorSettings(deps.runGit, gitDirectory)
  // Of several URLs only the first is ever used (remote-access.ts).
  const first = (key: string): string | undefined => settings.find(([name]) => name === key)?.[1]
  const originUrl = first('remote.origin.url')
  if (originUrl === undefined) throw cloneFault('clone/no-origin', deps, repository, path)
  const pushUrl = first('remote.origin.pushurl') ?? originUrl
  // Written or rewritten (url.<base>.insteadOf): either may be the one that names the repository.
  const [fetchedFrom] = await ask(['remote', 'get-url', 'origin'])
  const [pushedTo] = await ask(['remote', 'get-url', '--push', 'origin'])
  const proofs = [
    [originUrl, fetchedFrom],
    [pushUrl, pushedTo],
  ] as const
  for (const [written, rewritten = written] of proofs) {
    if ([written, rewritten].some((url) => provesRepository(url, repository, deps.apiBase)))
      continue
    throw cloneFault('clone/wrong-origin', deps, repository, path, showUrl(written))
  }
  const isPartial = settings.some(([key]) => isPartialKey(key))
  return { originUrl, shallowOrPartial: isPartial || shallow[0] === 'true' }
}

/**
 * The same proof of where a call of git is about to go, from its settings alone: neither the clone they
 * come from is looked at, nor is git asked. Pure. Faults: clone/no-origin, clone/wrong-origin.
 */
export function requireOrigin(
  deps: Pick<CloneDeps, 'apiBase'>,
  repository: RepositoryName,
  clonePath: string,
  settings: readonly Setting[],
  isPush: boolean,
): void {
  const written = settings.find(([key]) => key === 'remote.origin.url')?.[1] ?? ''
  if (written === '') throw cloneFault('clone/no-origin', deps, repository, clonePath)
  const urls = [written, rewriteUrl(settings, written, isPush)]
  if (urls.some((url) => provesRepository(url, repository, deps.apiBase))) return
  throw cloneFault('clone/wrong-origin', deps, repository, clonePath, showUrl(written))
}

/** Keys of a clone that leaves objects to be fetched later (gitformat "partial clone"). */
function isPartialKey(key: string): boolean {
  return (
    key === 'extensions.partialclone' || /^remote\..*\.(?:promisor|partialclonefilter)$/.test(key)
  )
}

function isFolder(path: string): boolean {
  return fileStatus(path)?.kind === 'directory'
}

function cloneFault(
  code: 'clone/missing' | 'clone/not-a-repository' | 'clone/no-origin' | 'clone/wrong-origin',
  deps: Pick<CloneDeps, 'apiBase'>,
  repository: RepositoryName,
  path: string,
  found: string | null = null,
): Fault {
  return fault(code, {
    repo: formatRepository(repository),
    path,
    target: /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`,
    url: cloneUrl(repository, deps.apiBase),
    wanted: originHost(deps.apiBase),
    found,
  })
}

// Reads a repository's configuration file without git, where it is as simple as git itself writes it.
// Anything else is left to git: an idle tick must not start a program per repository, and must never
// misjudge one either (design §3).

/** Values by full key (`remote.origin.url`), section and variable in lower case. */
type SimpleConfig = ReadonlyMap<string, readonly string[]>

const EMPTY = /^[ \t]*(?:[#;].*)?$/
const SECTION = /^[ \t]*\[([A-Za-z0-9-]+)(?: "([^"\\]*)")?\][ \t]*$/
const VARIABLE = /^[ \t]*([A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=[ \t]*([^"\\#;]*?))?[ \t]*$/

/** These change what the file means, or how the repository is to be read. */
const ONLY_FOR_GIT: ReadonlySet<string> = new Set(['include', 'includeif', 'extensions', 'url'])

/** The keys of a configuration file; null = only git can say (quotes, escapes, includes, extensions …). */
export function parseSimpleConfig(text: string): SimpleConfig | null {
  const found = new Map<string, string[]>()
  let section: string | null = null
  for (const line of text.split(/\r?\n/)) {
    if (EMPTY.test(line)) continue
    const [, name, subsection] = SECTION.exec(line) ?? []
    if (name !== undefined) {
      if (ONLY_FOR_GIT.has(name.toLowerCase())) return null
      section = [name.toLowerCase(), ...(subsection === undefined ? [] : [subsection])].join('.')
      continue
    }
    const [, variable, value] = VARIABLE.exec(line) ?? []
    if (variable === undefined || section === null) return null
    const key = `${section}.${variable.toLowerCase()}`
    found.set(key, [...(found.get(key) ?? []), value ?? 'true'])
  }
  return found
}
