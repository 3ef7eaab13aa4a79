import { isFault, type WriteEffect, withEffect, writeFault } from '../core/fault.ts'
import type { CapturedRemote, RunRemote } from '../core/journal.ts'
import { redact } from '../core/redaction.ts'
import { realPath } from '../sys/paths.ts'
import { lacksSecrets, withSecrets } from './captured-remote.ts'
import type { StoreDeps } from './fetch-base.ts'
import { gitDirectoryOf, inspectClone, requireOrigin } from './inspect-clone.ts'
import {
  accessOf,
  type RemoteAccess,
  type RemotePurpose,
  readOperatorSettings,
  readRemoteAccess,
} from './remote-access.ts'
import { explain, type GitOutput, gitFault } from './run-git.ts'
import { readStoreName, requireOwnSettings } from './store-paths.ts'
import { requireBranchName, requireObjectId } from './store-refs.ts'

type PushRequest = Readonly<{
  storePath: string
  oid: string
  branch: string
  remote: RunRemote
}>

/**
 * The object id of a branch where we push to, or null; asked of the remote itself, by its exact name.
 * Faults: git/failed, clone/*.
 */
export async function remoteBranch(
  deps: StoreDeps,
  storePath: string,
  branch: string,
  remote: RunRemote,
): Promise<string | null> {
  requireBranchName('ls-remote', branch)
  const access = await openAccess(deps, { storePath, remote }, 'probe')
  const ref = `refs/heads/${branch}`
  const { stdout } = await deps.runGit({
    ...access,
    operation: 'ls-remote',
    args: ['ls-remote', '--quiet', '--heads', 'origin', ref],
    gitDirectory: storePath,
    maxOutputBytes: 1024 * 1024,
  })
  // The pattern also matches refs that only end like this one.
  const lines = stdout.toString().split('\n')
  return lines.find((line) => line.endsWith(`\t${ref}`))?.split('\t')[0] ?? null
}

/**
 * Creates a branch on the remote, and never changes one (design §8, P§3): the push is refused unless
 * the branch is absent, or already at our commit. Hooks of ours do not run, nothing is signed, and no
 * tag or submodule goes along.
 * Every fault of it is a `WriteFault`, which says whether it may have happened.
 * Faults: git/foreign-branch, git/push-rejected, git/failed, clone/*.
 */
export async function pushNewBranch(deps: StoreDeps, request: PushRequest): Promise<void> {
  const { storePath, oid, branch } = request
  const access = await prepare(deps, request).catch((error: unknown) => {
    throw isFault(error) ? withEffect('none', error) : error
  })
  const ref = `refs/heads/${branch}`
  const output = await deps
    .runGit({
      ...access,
      operation: 'push',
      args: [
        'push',
        '--porcelain',
        '--no-progress',
        '--no-verify',
        '--no-follow-tags',
        '--no-signed',
        '--no-force-if-includes',
        '--recurse-submodules=no',
        `--force-with-lease=${ref}:`,
        'origin',
        `${oid}:${ref}`,
      ],
      gitDirectory: storePath,
      answers: [0, 1, 128],
    })
    .catch((error: unknown) => {
      if (!isFault(error)) throw error
      throw withEffect(error.code === 'sys/spawn-failed' ? 'none' : 'unknown', error)
    })
  if (output.code !== 0) await explainFailure(deps, request, access.secrets, output)
}

async function prepare(deps: StoreDeps, request: PushRequest): Promise<RemoteAccess> {
  requireBranchName('push', request.branch)
  requireObjectId('push', request.oid)
  return openAccess(deps, request, 'push')
}

/** Proved to be the repository's, each time: what is proved is what is used. */
async function openAccess(
  deps: StoreDeps,
  { storePath, remote }: Pick<PushRequest, 'storePath' | 'remote'>,
  purpose: RemotePurpose,
): Promise<RemoteAccess> {
  const repository = readStoreName(storePath)
  await requireOwnSettings(deps.runGit, storePath)
  if (remote === null) {
    return readRemoteAccess(deps, await inspectClone(deps, repository), purpose)
  }
  const { clonePath } = remote
  const { settings, secrets } = withSecrets(remote, await currentSettings(deps, remote))
  const cwd = realPath(clonePath) === null ? '/' : clonePath
  const access = accessOf(deps.environment, cwd, settings, purpose)
  requireOrigin(deps, repository, clonePath, access.settings, purpose === 'push')
  return { ...access, secrets: [...access.secrets, ...secrets] }
}

/** Looked at for secrets alone, and only where there are any. */
async function currentSettings(
  { runGit }: StoreDeps,
  remote: CapturedRemote,
): ReturnType<typeof readOperatorSettings> {
  const gitDirectory = lacksSecrets(remote) ? gitDirectoryOf(remote.clonePath) : null
  return gitDirectory === null ? [] : readOperatorSettings(runGit, gitDirectory)
}

/** Throws unless the branch turns out to be ours. */
async function explainFailure(
  deps: StoreDeps,
  request: PushRequest,
  secrets: readonly string[],
  output: GitOutput,
): Promise<void> {
  const { storePath, oid, branch, remote } = request
  const stdout = redact(output.stdout.toString(), secrets)
  const kind = classifyPushFailure(stdout, output.stderr)
  const kept = `${oid} in ${storePath}`
  if (kind === 'refused') {
    const reason = describeRejection(stdout, output.stderr)
    throw writeFault('none', 'git/push-rejected', { branch, reason, kept })
  }
  if (kind !== 'exists') {
    throw withEffect(effectOfFailure(kind), gitFault('push', explain(output.stderr)))
  }
  const found = await remoteBranch(deps, storePath, branch, remote).catch((error: unknown) => {
    // Ours was refused, that much is certain; whose is there could not be asked.
    throw isFault(error) ? withEffect('none', error) : error
  })
  if (found === oid) return
  if (found === null) throw withEffect('none', gitFault('push', explain(output.stderr)))
  throw writeFault('none', 'git/foreign-branch', { branch, found, expected: oid, kept })
}

const effectOfFailure = (kind: PushFailure): WriteEffect =>
  kind === 'unknown' ? 'unknown' : 'none'

// What a push that failed has done. Pure.

/** A status line of `git push --porcelain`: flag, refs, summary (git-push(1), OUTPUT). */
const STATUS_LINE = /^([ +\-*!=])\t[^\t]*\t(.*)$/m

/**
 * Why a push failed, by what git printed; the first row that matches counts.
 * refused: the server took the request and said no, for ever. failed: nothing happened, try again.
 */
const REASONS = [
  // The branch is there already, or came into being at this moment.
  {
    kind: 'exists',
    text: /\(stale info\)|\(already exists\)|reference already exists|\(fetch first\)|\(non-fast-forward\)/,
  },
  {
    kind: 'failed',
    text: /\[remote rejected\].*(?:internal (?:server )?error|unpacker error|failed to (?:update|lock) ref|cannot lock ref|unable to (?:write|create|migrate)|timed? ?out|unavailable)|remote unpack failed/i,
  },
  { kind: 'refused', text: /\[remote rejected\]|\[rejected\]|\[no match\]/ },
  // Before anything was sent: no connection, no login, no such repository.
  {
    kind: 'failed',
    text: /unable to access '|Could not read from remote repository|Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied \(|Host key verification failed|Could not resolve host|Connection refused|Permission to \S+ denied|does not appear to be a git repository|[Rr]epository (?:'.*' )?not found|unable to find remote helper|transport '.*' not allowed|src refspec/,
  },
] as const satisfies readonly { kind: PushFailure; text: RegExp }[]

/**
 * exists: another branch of that name is there. refused: GitHub's rules. failed: no effect, may be
 * tried again. unknown: it may have taken effect.
 */
type PushFailure = 'exists' | 'refused' | 'failed' | 'unknown'

/** Classifies a push that did not end with 0. */
export function classifyPushFailure(stdout: string, stderr: string): PushFailure {
  const status = STATUS_LINE.exec(stdout)?.[0] ?? ''
  const text = `${status}\n${stderr}`
  return REASONS.find((reason) => reason.text.test(text))?.kind ?? 'unknown'
}

const PROGRESS = /^(?:Enumerating|Counting|Compressing|Resolving|Total|Processing)\b.*\d/

/** What the server said: its own lines, without git's frame, then the reason of the status line. */
export function describeRejection(stdout: string, stderr: string): string {
  const remote = stderr
    .split(/[\r\n]+/)
    .flatMap((line) => /^remote: ?(.*)$/.exec(line)?.[1]?.trim() ?? [])
    .filter((line) => /[^\s\-—=*.]/.test(line) && !PROGRESS.test(line))
  const summary = STATUS_LINE.exec(stdout)?.[2] ?? ''
  const reason = [...remote, summary].filter(Boolean).join(' ')
  return reason.length > 4000 ? `${reason.slice(0, 4000)}…` : reason
}
