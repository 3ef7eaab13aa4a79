import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fault, isFault, isFaultOf } from '../core/fault.ts'
import { formatRepository, type RepositoryName } from '../core/issue-key.ts'
import type { Clock, FetchedBase, OperatorClone } from '../core/ports.ts'
import { ensureDirectory, fileStatus, removePath } from '../sys/files.ts'
import { waitForLock } from '../sys/kernel-lock.ts'
import { movePath } from '../sys/paths.ts'
import { syncFilesystemOf } from '../sys/sync-filesystem.ts'
import { captureRemote } from './captured-remote.ts'
import { fetchBranch, remoteDefaultBranch } from './fetch-branch.ts'
import { type CloneDeps, gitDirectoryOf, type InspectedClone } from './inspect-clone.ts'
import type { Environment } from './profile.ts'
import { accessOf, type RemoteAccess, readOperatorSettings } from './remote-access.ts'
import type { RunGit } from './run-git.ts'
import {
  removeStaleFiles,
  requireOwnSettings,
  type StorePaths,
  storePaths,
  writeStoreName,
} from './store-paths.ts'
import { dropOtherRefs } from './store-refs.ts'

export type StoreDeps = CloneDeps &
  Readonly<{
    clock: Clock
    environment: Environment
    storageRoot: string
    timeoutMs: number
  }>

type Origin = Readonly<{
  repository: RepositoryName
  clone: InspectedClone
  access: RemoteAccess
  /** null = ask the origin. */
  branch: string | null
}>

type Tip = Readonly<{ branch: string; oid: string }>

/**
 * Brings the daemon's own store of a repository up to date, making it first where there is none, and
 * returns the tip of the default branch (P§6). One process at a time per repository; the others wait
 * at most the git deadline. A store appears whole or not at all.
 * @param defaultBranch as GitHub tells it; null = ask the origin
 * Faults: git/failed, git/no-default-branch, git/store-damaged, state/lock-busy, sys/io.
 */
export async function fetchBase(
  deps: StoreDeps,
  repository: RepositoryName,
  clone: OperatorClone,
  defaultBranch: string | null,
): Promise<FetchedBase> {
  const paths = storePaths(deps.storageRoot, repository)
  const located = { ...clone, gitDirectory: gitDirectoryOf(clone.path) ?? clone.path }
  ensureDirectory(dirname(paths.lock))
  const lock = await waitForLock(deps.clock, paths.lock, deps.timeoutMs)
  try {
    const settings = await readOperatorSettings(deps.runGit, located.gitDirectory)
    const access = accessOf(deps.environment, located.path, settings, 'fetch')
    const origin = { repository, clone: located, access, branch: defaultBranch }
    const isMade = fileStatus(paths.store) !== null
    const tip = isMade
      ? await updateStore(deps, origin, paths)
      : await makeStore(deps, origin, paths)
    writeStoreName(paths.store, repository)
    const remote = captureRemote(located.path, settings)
    return { storePath: paths.store, ...tip, remote }
  } finally {
    lock.close()
  }
}

async function updateStore(deps: StoreDeps, origin: Origin, paths: StorePaths): Promise<Tip> {
  const { store } = paths
  for (const name of ['HEAD', 'objects', 'refs']) {
    if (fileStatus(join(store, name)) !== null) continue
    throw fault('git/store-damaged', { path: store, reason: `${name} is missing` })
  }
  await requireOwnSettings(deps.runGit, store)
  removeStaleFiles(store, deps.clock.now() - deps.timeoutMs)
  return fetchTip(deps, origin, store)
}

async function makeStore(deps: StoreDeps, origin: Origin, paths: StorePaths): Promise<Tip> {
  // The lock is ours, so what lies there was left by a crash. A git that outlived it may still be
  // writing there, so the new one gets a name of its own, and the old one goes next time at the latest.
  await removePath(paths.making).catch(() => {})
  const path = join(paths.making, `${randomBytes(6).toString('hex')}.git`)
  const source = await beginStore(deps.runGit, origin.clone, path)
  const first = await fetchTip(deps, origin, path).catch((error: unknown) => {
    if (source === 'clone' && isFault(error) && error.code === 'git/store-damaged') return null
    throw error
  })
  const isSound =
    first !== null && (source === 'empty' || (await isTreeComplete(deps, path, first)))
  const tip = isSound ? first : await makeFromOrigin(deps, origin, path)
  await dropOtherRefs(deps.runGit, path, `refs/remotes/origin/${tip.branch}`)
  writeStoreName(path, origin.repository)
  syncFilesystemOf(path)
  movePath(path, paths.store)
  await removePath(paths.making).catch(() => {})
  return tip
}

/** The clone's objects turned out to be damaged: nothing of it is used. */
async function makeFromOrigin(deps: StoreDeps, origin: Origin, path: string): Promise<Tip> {
  await removePath(path)
  await initStore(deps.runGit, origin.clone, path)
  return fetchTip(deps, origin, path)
}

async function fetchTip(deps: StoreDeps, origin: Origin, storePath: string): Promise<Tip> {
  const branch = origin.branch ?? (await remoteDefaultBranch(deps.runGit, storePath, origin.access))
  const oid =
    branch === null ? null : await fetchBranch(deps.runGit, storePath, origin.access, branch)
  if (branch !== null && oid !== null) return { branch, oid }
  throw fault('git/no-default-branch', { repo: formatRepository(origin.repository) })
}

/** Fetching trusts the history that was copied; at least the tree to be checked out must be there. */
async function isTreeComplete(deps: StoreDeps, storePath: string, tip: Tip): Promise<boolean> {
  const { code } = await deps.runGit({
    profile: 'tree',
    operation: 'rev-list',
    args: ['rev-list', '--objects', '--no-walk', '--quiet', tip.oid],
    gitDirectory: storePath,
    answers: [0, 1, 128],
  })
  return code === 0
}

/** How a store was begun: with the objects of the operator's clone, or empty. */
type StoreSource = 'clone' | 'empty'

/**
 * Begins a bare repository at `path`: complete and without alternates (P§6). Objects are hard-linked
 * from the operator's clone where that is possible (no `--local`: with it, another file system would
 * be an error). A clone that is shallow, partial, damaged or owned by somebody else is no help;
 * everything comes from the origin then.
 * Faults: git/failed.
 */
async function beginStore(
  runGit: RunGit,
  clone: InspectedClone,
  path: string,
): Promise<StoreSource> {
  ensureDirectory(join(path, '..'))
  if (!clone.shallowOrPartial && (await copyClone(runGit, clone, path))) return 'clone'
  await removePath(path)
  await initStore(runGit, clone, path)
  return 'empty'
}

/** Makes an empty bare repository of the clone's object format. */
async function initStore(
  runGit: RunGit,
  clone: Pick<InspectedClone, 'gitDirectory'>,
  path: string,
): Promise<void> {
  ensureDirectory(join(path, '..'))
  const { stdout } = await runGit({
    profile: 'operator',
    operation: 'rev-parse',
    args: ['rev-parse', '--show-object-format'],
    gitDirectory: clone.gitDirectory,
  })
  const format = stdout.toString().trim()
  const args = [
    'init',
    '--quiet',
    '--bare',
    '--template=',
    `--object-format=${format}`,
    path,
  ] as const
  await runGit({ profile: 'tree', operation: 'init', args: [...args] })
}

async function copyClone(runGit: RunGit, clone: InspectedClone, path: string): Promise<boolean> {
  try {
    await runGit({
      profile: 'tree',
      operation: 'clone',
      args: [
        'clone',
        '--quiet',
        '--bare',
        '--no-tags',
        '--template=',
        // Without this a clone that borrows objects would make us borrow them too.
        '--dissociate',
        // What the operator fetched need not be fetched again.
        '--config=remote.origin.fetch=+refs/remotes/origin/*:refs/remotes/origin/*',
        clone.path,
        path,
      ],
    })
    await runGit({
      profile: 'tree',
      operation: 'config',
      args: ['config', '--remove-section', 'remote.origin'],
      gitDirectory: path,
    })
    return true
  } catch (error) {
    // Not worth a fault: the origin has everything. Out of time is another matter.
    if (isFaultOf(error, 'git/failed') && error.details.timedOut !== true) return false
    throw error
  }
}
