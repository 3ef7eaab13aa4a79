import { basename, dirname, join } from 'node:path'
import { COMMIT_IDENTITY } from '../core/journal.ts'
import type { BaseCommit, Clock, RunTree } from '../core/ports.ts'
import {
  ensureDirectory,
  fileStatus,
  listDirectory,
  readFileBounded,
  removeFile,
  removePath,
  writeFileAtomic,
} from '../sys/files.ts'
import { makeWritable } from '../sys/open-up-folders.ts'
import { copyWithTime, movePath, setModified } from '../sys/paths.ts'
import { syncFilesystemOf } from '../sys/sync-filesystem.ts'
import type { RunGit } from './run-git.ts'

type TreeRequest = WorkerRepositoryRequest & Readonly<{ indexPath: string }>

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

/**
 * Moves a tree with its git directory to `archivePath` by one rename, so that it lies in one of the two
 * places whoever dies; its age there counts from now. Then its index goes. One that is not whole holds no
 * work and is removed, and so is one whose archive is there already.
 * @returns false = there was no tree to keep. Faults: sys/io.
 */
export async function archiveTree(
  clock: Clock,
  tree: Readonly<{ path: string; indexPath: string }>,
  archivePath: string,
): Promise<boolean> {
  const isWhole = fileStatus(tree.indexPath) !== null && fileStatus(tree.path)?.kind === 'directory'
  const isKept = isWhole && fileStatus(archivePath) === null
  if (isKept) {
    const folder = dirname(archivePath)
    // Each level by itself: no link is followed on the way.
    for (const level of [dirname(dirname(folder)), dirname(folder), folder]) ensureDirectory(level)
    await makeWritable(tree.path)
    setModified(tree.path, clock.now())
    movePath(tree.path, archivePath)
  }
  await removeTree(tree)
  return isKept
}

type WorkerRepositoryRequest = Readonly<{
  path: string
  branch: string
  /** Names at the root that never count as changes. */
  controlFiles: readonly string[]
}>

/** A harness that commits can: it has a name, nothing signs, and line ends are those of the checkout. */
const WORKER_CONFIG = `[user]
\tname = ${COMMIT_IDENTITY.name}
\temail = ${COMMIT_IDENTITY.email}
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[core]
\tautocrlf = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
`

const MAX_CONFIG_BYTES = 64 * 1024

/**
 * The git directory a worker finds in its tree: on its branch at the base, clean, able to commit, with
 * the history readable through the store's objects, and without a remote: with one it could move our
 * refs (P§6). Nothing is ever read back from it. Faults: git/failed, sys/io.
 * @param indexPath the index the tree was checked out with
 */
async function makeWorkerRepository(
  runGit: RunGit,
  base: BaseCommit,
  request: WorkerRepositoryRequest,
  indexPath: string,
): Promise<void> {
  const { path, branch } = request
  const inside = (name: string): string => join(path, '.git', name)
  const format = base.oid.length === 64 ? 'sha256' : 'sha1'
  await runGit({
    profile: 'tree',
    operation: 'init',
    args: [
      'init',
      '--quiet',
      '--template=',
      `--object-format=${format}`,
      `--initial-branch=${branch}`,
      path,
    ],
  })
  const objects = join(base.storePath, 'objects')
  writeFileAtomic(inside('objects/info/alternates'), `${quoteAlternate(objects)}\n`)
  await runGit({
    profile: 'tree',
    operation: 'update-ref',
    args: ['update-ref', `refs/heads/${branch}`, base.oid],
    gitDirectory: join(path, '.git'),
  })
  ensureDirectory(inside('info'))
  writeFileAtomic(inside('info/exclude'), request.controlFiles.map((name) => `/${name}\n`).join(''))
  const config = readFileBounded(inside('config'), MAX_CONFIG_BYTES)?.toString() ?? ''
  writeFileAtomic(inside('config'), config + WORKER_CONFIG)
  copyWithTime(indexPath, inside('index'))
}

/** A line of an alternates file; one that begins with a quote or a hash sign would be read otherwise. */
function quoteAlternate(path: string): string {
  return /^[^"#\n]+$/.test(path) ? path : JSON.stringify(path)
}
