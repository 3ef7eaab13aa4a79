import { fault, isFaultOf, reasonOf } from '../core/fault.ts'
import { DURABLE_KEYS } from './profile.ts'
import type { RemoteAccess } from './remote-access.ts'
import type { RunGit } from './run-git.ts'
import { dropConflictingRefs, isObjectId, requireBranchName } from './store-refs.ts'

const NO_SUCH_REF = /couldn't find remote ref/
/** What git says about its own repository when objects or refs are missing or unreadable. */
const DAMAGE =
  /not a git repository:|bad object|bad tree object|invalid object|unable to read (?:tree|sha1|object)|object file .* is empty|is corrupt|(?:blob|tree|commit) .* is missing|missing (?:blob|tree|commit)|packfile .* (?:cannot be accessed|does not match)|failed to read (?:object|delta)|did not send all necessary objects/i

/** The branch the origin's HEAD names; null = an empty repository, or a detached HEAD. Faults: git/failed. */
export async function remoteDefaultBranch(
  runGit: RunGit,
  storePath: string,
  access: RemoteAccess,
): Promise<string | null> {
  const { stdout } = await runGit({
    ...access,
    operation: 'ls-remote',
    args: ['ls-remote', '--quiet', '--symref', 'origin', 'HEAD'],
    gitDirectory: storePath,
  })
  return /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(stdout.toString())?.[1] ?? null
}

/**
 * Fetches one branch, also after it was rewritten upstream, and nothing else: no tags, no other
 * branches, and no ref of ours is touched (C22).
 * @returns the object id of its tip; null = the origin has no such branch
 * Faults: git/failed, git/store-damaged.
 */
export async function fetchBranch(
  runGit: RunGit,
  storePath: string,
  access: RemoteAccess,
  branch: string,
): Promise<string | null> {
  requireBranchName('fetch', branch)
  const tracking = `refs/remotes/origin/${branch}`
  await dropConflictingRefs(runGit, storePath, tracking)
  const isThere = await runGit({
    ...access,
    operation: 'fetch',
    args: [
      'fetch',
      '--quiet',
      '--no-tags',
      '--no-prune',
      '--no-write-fetch-head',
      '--no-recurse-submodules',
      '--no-auto-gc',
      'origin',
      `+refs/heads/${branch}:${tracking}`,
    ],
    keys: DURABLE_KEYS,
    gitDirectory: storePath,
  }).then(
    () => true,
    (error: unknown) => {
      if (!isFaultOf(error, 'git/failed')) throw error
      if (NO_SUCH_REF.test(error.message)) return false
      throw DAMAGE.test(error.message) ? damaged(storePath, reasonOf(error)) : error
    },
  )
  return isThere ? resolveRef(runGit, storePath, tracking) : null
}

async function resolveRef(runGit: RunGit, storePath: string, ref: string): Promise<string> {
  const { code, stdout, stderr } = await runGit({
    profile: 'tree',
    operation: 'rev-parse',
    args: ['rev-parse', '--quiet', '--verify', `${ref}^{commit}`],
    gitDirectory: storePath,
    answers: [0, 1, 128],
  })
  const oid = stdout.toString().trim()
  if (code === 0 && isObjectId(oid)) return oid
  throw damaged(storePath, stderr || `${ref} names no commit`)
}

function damaged(storePath: string, reason: unknown): Error {
  return fault('git/store-damaged', { path: storePath, reason: String(reason) })
}
