import type { CommitRequest } from '../core/ports.ts'
import { syncFilesystemOf } from '../sys/native.ts'
import { DURABLE_KEYS } from './profile.ts'
import { gitFault, type RunGit } from './run-git.ts'
import { RUN_REFS, requireObjectId } from './store-refs.ts'

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
