import { basename, dirname, join } from 'node:path'
import type { BaseCommit, RunTree } from '../core/ports.ts'
import { ensureDirectory, fileStatus, listDirectory, removeFile, removePath } from '../sys/files.ts'
import { movePath } from '../sys/move-path.ts'
import { syncFilesystemOf } from '../sys/native.ts'
import type { RunGit } from './run-git.ts'
import { makeWorkerRepository, type WorkerRepositoryRequest } from './worker-repository.ts'

export type TreeRequest = WorkerRepositoryRequest & Readonly<{ indexPath: string }>

/** Beside an index: one in the making, and the copies `captureTree` works on. */
export const INDEX_SUFFIXES = { unfinished: '.new', working: '.working-' } as const

/**
 * Checks the base out into `path` with a git directory of its own for the worker (design §8).
 * Attributes of the tree hold (line ends, executable bits, links); filter drivers do not run, so
 * large files stay pointers (C25); folders of submodules stay empty.
 *
 * The index at `indexPath` appears last: where it is, the tree is whole and on disk, and is returned
 * as it is, whatever a worker did there since. Where it is not, what lies at `path` was left by a
 * crash and is made anew. Faults: git/failed, sys/io.
 */
export async function createTree(
  runGit: RunGit,
  base: BaseCommit,
  request: TreeRequest,
): Promise<RunTree> {
  const { path, indexPath } = request
  const tree = { storePath: base.storePath, path, indexPath, baseOid: base.oid }
  if (fileStatus(indexPath) !== null && fileStatus(path)?.kind === 'directory') return tree
  await removeTree(request)
  ensureDirectory(path)
  ensureDirectory(dirname(indexPath))
  const unfinished = indexPath + INDEX_SUFFIXES.unfinished
  await runGit({
    profile: 'tree',
    operation: 'checkout',
    args: ['read-tree', '-m', '-u', base.oid],
    gitDirectory: base.storePath,
    workTree: path,
    indexPath: unfinished,
    cwd: path,
  })
  await makeWorkerRepository(runGit, base, request, unfinished)
  syncFilesystemOf(path)
  movePath(unfinished, indexPath)
  return tree
}

/** Removes a tree, its index, and copies of the index left by a crash. Faults: sys/io. */
export async function removeTree(
  tree: Readonly<{ path: string; indexPath: string }>,
): Promise<void> {
  // First the index: without it the rest counts as unfinished.
  removeFile(tree.indexPath)
  const beside = Object.values(INDEX_SUFFIXES).map((suffix) => basename(tree.indexPath) + suffix)
  for (const name of listDirectory(dirname(tree.indexPath))) {
    if (!beside.some((start) => name.startsWith(start))) continue
    removeFile(join(dirname(tree.indexPath), name))
  }
  await removePath(tree.path)
}
