import { join } from 'node:path'
import { fault } from '../core/fault.ts'
import { parseRepositoryName, type RepositoryName, repositoryId } from '../core/issue-key.ts'
import {
  fileStatus,
  listDirectory,
  readFileBounded,
  removeFile,
  writeFileAtomic,
} from '../sys/files.ts'
import { gitFault, type RunGit } from './run-git.ts'

/** Where things of one repository lie below the storage root. */
export type StorePaths = Readonly<{
  store: string
  /** Kernel lock around making and fetching. */
  lock: string
  /** Stores in the making; whoever holds the lock may remove all of it. */
  making: string
}>

export function storePaths(storageRoot: string, repository: RepositoryName): StorePaths {
  const id = repositoryId(repository)
  return {
    store: join(storageRoot, `${id}.git`),
    lock: join(storageRoot, `${id}.lock`),
    // No owner begins with a dot.
    making: join(storageRoot, '.making', id),
  }
}

const NAME_FILE = 'caduceus-repository'
const MAX_NAME_BYTES = 256

/** Notes in a store whose it is, in the case the operator writes it: their clone lies under that name. */
export function writeStoreName(storePath: string, repository: RepositoryName): void {
  const name = `${repository.owner}/${repository.name}`
  if (readName(storePath) !== name) writeFileAtomic(join(storePath, NAME_FILE), name)
}

/** Faults: git/failed. */
export function readStoreName(storePath: string): RepositoryName {
  const repository = parseRepositoryName(readName(storePath) ?? '')
  if (repository !== null) return repository
  throw gitFault('store', `${storePath} does not say which repository it holds`)
}

function readName(storePath: string): string | null {
  return readFileBounded(join(storePath, NAME_FILE), MAX_NAME_BYTES)?.toString() ?? null
}

/** What git writes into a bare repository it makes. */
const OWN_KEYS =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|ignorecase|precomposeunicode|symlinks)|extensions\.(?:objectformat|refstorage))$/

/**
 * Git reads the store's configuration when it works there, so it must say nothing about remotes or
 * programs: another process of our user may have written to it. Nothing in it is run or followed here.
 * Faults: git/store-damaged, git/failed.
 */
export async function requireOwnSettings(runGit: RunGit, storePath: string): Promise<void> {
  const path = join(storePath, 'config')
  const { stdout } = await runGit({
    profile: 'tree',
    operation: `config of ${storePath}`,
    args: ['config', '--file', path, '--no-includes', '--null', '--name-only', '--list'],
  })
  const keys = stdout.toString().split('\0').filter(Boolean)
  const foreign = keys.filter((key) => !OWN_KEYS.test(key)).map((key) => `${key} in ${path}`)
  if (fileStatus(join(storePath, 'commondir')) !== null) foreign.push(join(storePath, 'commondir'))
  const [first] = foreign
  if (first === undefined) return
  const reason = `somebody else has put ${first} there; without that it can be used`
  throw fault('git/store-damaged', { path: storePath, reason })
}

/** Where git keeps locks and unfinished files, and whether folders below are looked into. */
const PLACES = [
  { folder: '.', deep: false },
  { folder: 'refs', deep: true },
  { folder: 'reftable', deep: false },
  { folder: join('objects', 'info'), deep: false },
  { folder: join('objects', 'pack'), deep: false },
] as const satisfies readonly { folder: string; deep: boolean }[]

/** Git's, and our own of `writeStoreName`. No branch can end in `.lock` (git-check-ref-format(1)). */
const LEFTOVER = /\.lock$|^\.?tmp[-_]|^\..*\.tmp$/

/**
 * Removes what a killed git left in a store: lock files, which block every later fetch (P§6), and
 * unfinished packs. Only what is older than the deadline of any git of ours; call it with the
 * repository's lock held.
 * @param olderThan milliseconds since the epoch
 */
export function removeStaleFiles(storePath: string, olderThan: number): void {
  for (const { folder, deep } of PLACES) removeStale(join(storePath, folder), deep, olderThan)
}

function removeStale(folder: string, deep: boolean, olderThan: number): void {
  for (const name of listDirectory(folder)) {
    const path = join(folder, name)
    const status = fileStatus(path)
    if (status?.kind === 'directory' && deep) removeStale(path, deep, olderThan)
    if (status?.kind === 'file' && LEFTOVER.test(name) && status.mtimeMs < olderThan) {
      removeFile(path)
    }
  }
}
