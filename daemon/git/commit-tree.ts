import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { CapturedTree, CommitRequest, RunTree } from '../core/ports.ts'
import { fileStatus, listDirectory, removeFile } from '../sys/files.ts'
import { copyWithTime } from '../sys/paths.ts'
import { syncFilesystemOf } from '../sys/sync-filesystem.ts'
import { INDEX_SUFFIXES } from './create-tree.ts'
import { describeChanges } from './describe-changes.ts'
import { type CaptureLimits, type FoundChanges, findChanges } from './find-changes.ts'
import {
  bytePathOf,
  displayPath,
  GITLINK,
  type ListedEntry,
  nulTerminated,
  parseStaged,
  toBytes,
} from './listing.ts'
import { DURABLE_KEYS } from './profile.ts'
import { refuseTraps } from './refuse-traps.ts'
import { gitFault, makeTreeGit, type RunGit, type TreeGit, treeUnusable } from './run-git.ts'
import { RUN_REFS, requireObjectId } from './store-refs.ts'

/**
 * Builds the tree to publish from the worker's files by plumbing (P§5). Nothing a worker planted –
 * hooks, filters, fsmonitor, configuration of a nested repository – is run, and nothing it did to its
 * own git directory counts. Only for a tree whose processes have ended; may be repeated.
 *
 * Objects are written without waiting for the disk: `commitTree` makes them last.
 * Faults: worker/tree-unusable, git/stored-form, git/failed, sys/io.
 */
export async function captureTree(
  runGit: RunGit,
  tree: RunTree,
  controlFiles: readonly string[],
  limits: CaptureLimits,
): Promise<CapturedTree> {
  if (fileStatus(tree.path)?.kind !== 'directory') {
    throw treeUnusable(tree, 'the folder itself is gone or was replaced')
  }
  refuseTraps(tree)
  const random = randomBytes(6).toString('hex')
  const indexPath = tree.indexPath + INDEX_SUFFIXES.working + random
  // With its time: changes within the second of the checkout are only seen that way.
  copyWithTime(tree.indexPath, indexPath)
  try {
    const git = makeTreeGit(runGit, tree, indexPath)
    const gitlinks = await takeGitlinksOut(git)
    const control = new Set(controlFiles.map(bytePathOf))
    const found = await findChanges(git, { tree, gitlinks, control, limits })
    await updateIndex(git, tree, found)
    await putBack(git, gitlinks)
    const treeOid = (await git({ args: ['write-tree'] })).stdout.toString().trim()
    const { changes, linksOut } = await describeChanges(git, tree, treeOid)
    const touched = gitlinks.filter(
      ({ path }) => !isEmptyFolder(join(tree.path, displayPath(path))),
    )
    const submodulesKept = touched.map(({ path }) => displayPath(path))
    return { treeOid, changes, submodulesKept, linksOut }
  } finally {
    removeFile(indexPath)
    removeFile(`${indexPath}.lock`)
  }
}

/** With a submodule in the index git looks into its folder, where a worker may have planted anything. */
async function takeGitlinksOut(git: TreeGit): Promise<readonly ListedEntry[]> {
  const { stdout } = await git({ args: ['ls-files', '-z', '--stage'] })
  const gitlinks = parseStaged(stdout).filter(({ mode }) => mode === GITLINK)
  await forceRemove(
    git,
    gitlinks.map(({ path }) => path),
  )
  return gitlinks
}

async function updateIndex(git: TreeGit, tree: RunTree, found: FoundChanges): Promise<void> {
  // Removals first: a file may have become a folder, or the other way round.
  await forceRemove(git, found.removed)
  await putBack(git, found.sameContent)
  if (found.written.length === 0) return
  const { stderr } = await git({
    args: ['update-index', '--add', '--remove', '-z', '--stdin'],
    input: nulTerminated(found.written),
  })
  const ignored = /^Ignoring path (.*)$/m.exec(stderr)?.[1]
  if (ignored !== undefined) throw treeUnusable(tree, `git takes no path like ${ignored}`)
}

async function forceRemove(git: TreeGit, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  const args = ['update-index', '-z', '--force-remove', '--stdin'] as const
  await git({ args, input: nulTerminated(paths) })
}

async function putBack(git: TreeGit, entries: readonly ListedEntry[]): Promise<void> {
  if (entries.length === 0) return
  const records = entries.map(({ mode, oid, path }) => `${mode} ${oid}\t${path}\0`)
  await git({ args: ['update-index', '-z', '--index-info'], input: toBytes(records.join('')) })
}

/** As `createTree` left it. */
function isEmptyFolder(path: string): boolean {
  return fileStatus(path)?.kind === 'directory' && listDirectory(path).length === 0
}

/**
 * Makes the commit of a captured tree and keeps it under a ref of its own. Everything in it comes from
 * the request, so the same request gives the same object id, whenever it is made (P§3). Commit, tree
 * and ref are on disk when it resolves. Never signed (C27); no hook runs. Faults: git/failed, sys/io.
 */
export async function commitTree(
  runGit: RunGit,
  storePath: string,
  request: CommitRequest,
): Promise<string> {
  const { treeOid, parentOid, message, author, dateSeconds, keepAs } = request
  for (const oid of [treeOid, parentOid]) requireObjectId('commit-tree', oid)
  if (!keepAs.startsWith(RUN_REFS)) throw gitFault('update-ref', `${keepAs} is no ref of a run`)
  // With the @ also a small number is a time and not a date.
  const date = `@${dateSeconds} +0000`
  const { stdout } = await runGit({
    profile: 'tree',
    operation: 'commit-tree',
    args: ['commit-tree', '--no-gpg-sign', '-p', parentOid, '-F', '-', treeOid],
    keys: { ...DURABLE_KEYS, 'i18n.commitEncoding': 'utf-8' },
    gitDirectory: storePath,
    input: message,
    env: {
      GIT_AUTHOR_NAME: author.name,
      GIT_AUTHOR_EMAIL: author.email,
      GIT_AUTHOR_DATE: date,
      GIT_COMMITTER_NAME: author.name,
      GIT_COMMITTER_EMAIL: author.email,
      GIT_COMMITTER_DATE: date,
    },
  })
  const oid = stdout.toString().trim()
  requireObjectId('commit-tree', oid)
  // Before the ref: what it names must not be missing after a power cut.
  syncFilesystemOf(storePath)
  await runGit({
    profile: 'tree',
    operation: 'update-ref',
    args: ['update-ref', '--no-deref', keepAs, oid],
    keys: DURABLE_KEYS,
    gitDirectory: storePath,
  })
  syncFilesystemOf(storePath)
  return oid
}

/** Whether the store has a commit. Faults: git/failed. */
export async function hasCommit(runGit: RunGit, storePath: string, oid: string): Promise<boolean> {
  requireObjectId('cat-file', oid)
  const { code } = await runGit({
    profile: 'tree',
    operation: 'cat-file',
    args: ['cat-file', '-e', `${oid}^{commit}`],
    gitDirectory: storePath,
    answers: [0, 1, 128],
  })
  return code === 0
}
