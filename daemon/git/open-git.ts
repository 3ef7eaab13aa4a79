import type { RepositoryName } from '../core/issue-key.ts'
import type { Clock, Git } from '../core/ports.ts'
import { captureTree, commitTree, hasCommit } from './commit-tree.ts'
import { archiveTree, createTree, removeTree } from './create-tree.ts'
import { describeDifference } from './describe-changes.ts'
import { fetchBase } from './fetch-base.ts'
import { CAPTURE_LIMITS, type CaptureLimits } from './find-changes.ts'
import { inspectClone } from './inspect-clone.ts'
import type { Environment } from './profile.ts'
import { pushNewBranch, remoteBranch } from './push-branch.ts'
import { makeRunGit } from './run-git.ts'
import { tidyStore } from './store-refs.ts'

export type GitOptions = Readonly<{
  /** `<workdirBase>/<owner>/<repo>` is the operator's clone. Absolute. */
  workdirBase: string
  /** The daemon's own stores (repo_storage_root). Absolute. */
  storageRoot: string
  apiBase: string
  /** Deadline of each call of git (git_timeout_seconds). */
  timeoutMs: number
  /** What is left of the time the process has, when that is limited. */
  timeLeftMs?: () => number
  /** Names at the root of a tree that the worker's own repository ignores. */
  controlFiles: readonly string[]
  /** What is read of a worker's files at most. */
  captureLimits?: CaptureLimits
}>

/**
 * Git as the engine needs it (design §8).
 * @param deps.environment the operator's environment, for their credentials, ssh agent and proxies
 */
export function openGit(
  deps: Readonly<{ clock: Clock; environment: Environment }>,
  options: GitOptions,
): Git {
  const runGit = makeRunGit(deps.environment, () =>
    Math.max(Math.min(options.timeoutMs, options.timeLeftMs?.() ?? options.timeoutMs), 1),
  )
  const all = { ...deps, ...options, runGit }
  const limits = options.captureLimits ?? CAPTURE_LIMITS
  return {
    inspectClone: async (repository: RepositoryName) => inspectClone(all, repository),
    fetchBase: async (repository, clone, branch) => fetchBase(all, repository, clone, branch),
    createTree: async (base, run) =>
      createTree(runGit, base, { ...run, controlFiles: options.controlFiles }),
    captureTree: async (tree, controlFiles) => captureTree(runGit, tree, controlFiles, limits),
    commitTree: async (storePath, request) => commitTree(runGit, storePath, request),
    hasCommit: async (storePath, oid) => hasCommit(runGit, storePath, oid),
    remoteBranch: async (storePath, branch, remote) => remoteBranch(all, storePath, branch, remote),
    pushNewBranch: async (storePath, oid, branch, remote) =>
      pushNewBranch(all, { storePath, oid, branch, remote }),
    describeDifference: async (storePath, fromTree, toTree, maxBytes) =>
      describeDifference(runGit, storePath, fromTree, toTree, maxBytes),
    removeTree,
    archiveTree: async (tree, archivePath) => archiveTree(deps.clock, tree, archivePath),
    tidyStore: async (repository, goneRuns) => tidyStore(all, repository, goneRuns),
  }
}
