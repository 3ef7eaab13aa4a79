import { fault, isFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { RunTree } from '../core/ports.ts'
import { FLEETING_KEYS } from './profile.ts'
import type { GitCall, GitOutput, RunGit } from './run-git.ts'

/** A call of git on a worker's files, with the store as its repository and an index of its own. */
export type TreeGit = (call: Pick<GitCall, 'args' | 'input'>) => Promise<GitOutput>

/** A file of the tree that may not be read; of the store's own files git says it otherwise. */
const UNREADABLE = /(?:open\(".*"\)|could not open '.*' for reading): Permission denied/s

/** Objects are written without waiting for the disk. Faults: git/failed, worker/tree-unusable, sys/output-too-large. */
export function makeTreeGit(runGit: RunGit, tree: RunTree, indexPath: string): TreeGit {
  return async (call) =>
    runGit({
      ...call,
      profile: 'tree',
      operation: call.args[0],
      keys: FLEETING_KEYS,
      gitDirectory: tree.storePath,
      workTree: tree.path,
      indexPath,
      cwd: tree.path,
      maxOutputBytes: LIMITS.gitListingBytes,
    }).catch((error: unknown) => {
      const isTheirs = isFault(error) && UNREADABLE.test(error.message)
      throw isTheirs ? treeUnusable(tree, String(error.details['reason']), error) : error
    })
}

/** The worker left something that cannot be published. */
export function treeUnusable(tree: Pick<RunTree, 'path'>, reason: string, cause?: unknown): Error {
  return fault('worker/tree-unusable', { reason, tree: tree.path }, cause)
}
