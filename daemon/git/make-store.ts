import { join } from 'node:path'
import { isFault } from '../core/fault.ts'
import { ensureDirectory, removePath } from '../sys/files.ts'
import type { InspectedClone } from './inspect-clone.ts'
import type { RunGit } from './run-git.ts'

/** How a store was begun: with the objects of the operator's clone, or empty. */
export type StoreSource = 'clone' | 'empty'

/**
 * Begins a bare repository at `path`: complete and without alternates (P§6). Objects are hard-linked
 * from the operator's clone where that is possible (no `--local`: with it, another file system would
 * be an error). A clone that is shallow, partial, damaged or owned by somebody else is no help;
 * everything comes from the origin then.
 * Faults: git/failed.
 */
export async function beginStore(
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
export async function initStore(
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
    if (isFault(error) && error.code === 'git/failed' && error.details['timedOut'] !== true) {
      return false
    }
    throw error
  }
}
