import type { RepositoryName } from '../core/issue-key.ts'
import type { Clock } from '../core/ports.ts'
import { fileStatus, removePath } from '../sys/files.ts'
import { tryLock } from '../sys/kernel-lock.ts'
import { DURABLE_KEYS } from './profile.ts'
import { gitFault, type RunGit } from './run-git.ts'
import { removeStaleFiles, storePaths } from './store-paths.ts'

/** Where commits of runs are kept from being collected. */
export const RUN_REFS = 'refs/runs/'

const MAX_REFS_BYTES = 64 * 1024 * 1024

/** Removes every ref of a new store but one: what was copied with the operator's clone. Faults: git/failed. */
export async function dropOtherRefs(
  runGit: RunGit,
  storePath: string,
  kept: string,
): Promise<void> {
  const refs = await listRefs(runGit, storePath, 'refs/')
  await deleteRefs(
    runGit,
    storePath,
    refs.filter((ref) => ref !== kept && !ref.startsWith(RUN_REFS)),
  )
}

/**
 * Removes what stands in the way of a ref's name: after `main` became `main/v2` upstream, the old name
 * is a file where the new one needs a folder, and the other way round. Faults: git/failed.
 */
export async function dropConflictingRefs(
  runGit: RunGit,
  storePath: string,
  wanted: string,
): Promise<void> {
  const refs = await listRefs(runGit, storePath, 'refs/remotes/origin/')
  const isInTheWay = (ref: string): boolean =>
    wanted.startsWith(`${ref}/`) || ref.startsWith(`${wanted}/`)
  await deleteRefs(runGit, storePath, refs.filter(isInTheWay))
}

/** Removes what keeps the commits of runs, if it still names what it named a moment ago. Faults: git/failed. */
export async function dropRunRefs(
  runGit: RunGit,
  storePath: string,
  runIds: readonly string[],
): Promise<void> {
  const wanted = new Set(runIds.map((runId) => `${RUN_REFS}${runId}`))
  const { stdout } = await runGit({
    profile: 'tree',
    operation: 'for-each-ref',
    args: ['for-each-ref', '--format=%(refname) %(objectname)', RUN_REFS],
    gitDirectory: storePath,
    maxOutputBytes: MAX_REFS_BYTES,
  })
  const lines = stdout.toString('latin1').split('\n')
  await deleteRefs(
    runGit,
    storePath,
    lines.filter((line) => wanted.has(line.split(' ', 1)[0] ?? '')),
  )
}

async function listRefs(
  runGit: RunGit,
  storePath: string,
  prefix: string,
): Promise<readonly string[]> {
  const { stdout } = await runGit({
    profile: 'tree',
    operation: 'for-each-ref',
    args: ['for-each-ref', '--format=%(refname)', prefix],
    gitDirectory: storePath,
    maxOutputBytes: MAX_REFS_BYTES,
  })
  return stdout.toString('latin1').split('\n').filter(Boolean)
}

/** @param refs each perhaps followed by a space and the object it must still name */
async function deleteRefs(
  runGit: RunGit,
  storePath: string,
  refs: readonly string[],
): Promise<void> {
  if (refs.length === 0) return
  await runGit({
    profile: 'tree',
    operation: 'update-ref',
    args: ['update-ref', '--no-deref', '--stdin'],
    keys: DURABLE_KEYS,
    gitDirectory: storePath,
    input: Buffer.from(refs.map((ref) => `delete ${ref}\n`).join(''), 'latin1'),
  })
}

// The names git accepts (git-check-ref-format(1)), checked before they become part of an argument.

const FORBIDDEN = /[\0-\x20~^:?*[\\\x7f]|\.\.|@\{|\/\/|^@$/
const BAD_PART = /^\.|\.lock$|\.$/

/** Whether a text may follow `refs/heads/`. */
export function isBranchName(text: string): boolean {
  return (
    text !== '' &&
    !text.startsWith('-') &&
    !FORBIDDEN.test(text) &&
    text.split('/').every((part) => part !== '' && !BAD_PART.test(part))
  )
}

/** Whether a text is a full object id (SHA-1 or SHA-256). */
export function isObjectId(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text)
}

/** Faults: git/failed unless it is one. */
export function requireObjectId(operation: string, text: string): void {
  if (!isObjectId(text)) throw gitFault(operation, `"${text}" is no object id`)
}

/** Faults: git/failed unless it is one. */
export function requireBranchName(operation: string, branch: string): void {
  if (!isBranchName(branch)) throw gitFault(operation, `"${branch}" is no name of a branch`)
}

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
    if (isMade) removeStaleFiles(paths.store, olderThan)
    if (isMade && goneRuns.length > 0) await dropRunRefs(deps.runGit, paths.store, goneRuns)
    return true
  } finally {
    lock.close()
  }
}
