import type { RepositoryName } from '../core/issue-key.ts'
import type { Clock } from '../core/ports.ts'
import { fileStatus, removePath } from '../sys/files.ts'
import { tryLock } from '../sys/kernel-lock.ts'
import type { RunGit } from './run-git.ts'
import { removeLeftovers, storePaths } from './store-paths.ts'
import { dropRunRefs } from './store-refs.ts'

type TidyDeps = Readonly<{
  clock: Clock
  runGit: RunGit
  storageRoot: string
  timeoutMs: number
}>

/**
 * Removes from a repository's store what killed gits left there, and the refs of runs that are gone, whose
 * commits git may then collect. Under the repository's lock, which is not waited for: while somebody
 * works on the store nothing is done and false returned. Without a store there is nothing to do.
 * Faults: git/failed, sys/io.
 */
export async function tidyStore(
  deps: TidyDeps,
  repository: RepositoryName,
  goneRuns: readonly string[],
): Promise<boolean> {
  const paths = storePaths(deps.storageRoot, repository)
  const making = fileStatus(paths.making)
  const isMade = fileStatus(paths.store)?.kind === 'directory'
  if (!isMade && making === null) return true
  const lock = tryLock(paths.lock)
  if (lock === null) return false
  try {
    const olderThan = deps.clock.now() - deps.timeoutMs
    // A git that outlived its owner may still be writing there; its deadline ends it.
    if (making !== null && making.mtimeMs < olderThan) await removePath(paths.making)
    if (isMade) removeLeftovers(paths.store, olderThan)
    if (isMade && goneRuns.length > 0) await dropRunRefs(deps.runGit, paths.store, goneRuns)
    return true
  } finally {
    lock.close()
  }
}
