import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { RunTree } from '../core/ports.ts'
import { FLEETING_KEYS } from './profile.ts'
import type { GitCall, GitOutput, RunGit } from './run-git.ts'

/** A call of git on a worker's files, with the store as its repository and an index of its own. */
export type TreeGit = (call: Pick<GitCall, 'args' | 'input'>) => Promise<GitOutput>

/** Objects are written without waiting for the disk. Faults: git/failed, sys/output-too-large. */
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
    })
}

/** The worker left something that cannot be published. */
export function treeUnusable(tree: Pick<RunTree, 'path'>, reason: string, cause?: unknown): Error {
  return fault('worker/tree-unusable', { reason, tree: tree.path }, cause)
}
