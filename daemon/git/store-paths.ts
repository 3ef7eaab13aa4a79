import { join } from 'node:path'
import { parseRepositoryName, type RepositoryName, repositoryId } from '../core/issue-key.ts'
import { readFileBounded, writeFileAtomic } from '../sys/files.ts'
import { gitFault } from './run-git.ts'

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
