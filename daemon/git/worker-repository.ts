import { join } from 'node:path'
import type { BaseCommit } from '../core/ports.ts'
import { COMMIT_IDENTITY } from '../core/publish-policy.ts'
import { ensureDirectory, readFileBounded, writeFileAtomic } from '../sys/files.ts'
import { copyWithTime } from '../sys/move-path.ts'
import type { RunGit } from './run-git.ts'

export type WorkerRepositoryRequest = Readonly<{
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
export async function makeWorkerRepository(
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
