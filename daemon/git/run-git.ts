import { type Fault, fault, isFault, reasonOf } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { RunTree } from '../core/ports.ts'
import { redact } from '../core/redaction.ts'
import { ownerMark } from '../sys/owner-mark.ts'
import { ownIdentity } from '../sys/process-identity.ts'
import { runProcess } from '../sys/run-process.ts'
import {
  type Environment,
  FLEETING_KEYS,
  keyArguments,
  PROFILES,
  type ProfileName,
  type Setting,
  settingsEnvironment,
} from './profile.ts'

/** One call of git. */
export type GitCall = Readonly<{
  profile: ProfileName
  /** For messages: 'fetch'. */
  operation: string
  /** Subcommand and its arguments; nothing secret. */
  args: readonly [string, ...string[]]
  /** Which repository; without one git works on none. */
  gitDirectory?: string
  workTree?: string
  indexPath?: string
  /** Default: the root folder. */
  cwd?: string
  /** Keys on the command line, besides those of the profile. */
  keys?: Readonly<Record<string, string>>
  /** Keys that may be secret, given through the environment. */
  settings?: readonly Setting[]
  env?: Environment
  input?: string | Uint8Array
  /** Values to mask in what git says. */
  secrets?: readonly string[]
  /** Default: 32 KiB, the rest is dropped. With a number, more than that is a fault. */
  maxOutputBytes?: number
  /** Drop what is beyond `maxOutputBytes` instead. */
  cut?: boolean
  /** Exit codes that are answers; default only 0. */
  answers?: readonly number[]
}>

export type GitOutput = Readonly<{
  code: number
  stdout: Buffer
  /** Redacted, at most 32 KiB. */
  stderr: string
}>

/** Runs git as a call says. Faults: git/failed, git/too-old, sys/spawn-failed, sys/output-too-large. */
export type RunGit = (call: GitCall) => Promise<GitOutput>

/**
 * Git as the rest of this folder calls it. Its version is asked once, before the first call.
 * @param operator the operator's environment
 * @param timeoutMs deadline of every single call (git_timeout_seconds)
 */
export function makeRunGit(operator: Environment, timeoutMs: () => number): RunGit {
  let checked: Promise<void> | null = null
  return async (call) => {
    checked ??= requireRecentGit(operator, timeoutMs())
    await checked.catch((error: unknown) => {
      // Asked again next time: git may have been installed meanwhile.
      checked = null
      throw error
    })
    return runGit(operator, timeoutMs(), call)
  }
}

/** A call of git on a worker's files, with the store as its repository and an index of its own. */
export type TreeGit = (call: Pick<GitCall, 'args' | 'input'>) => Promise<GitOutput>

/**
 * What is wrong with a file of the tree: it may not be read (of the store's own files git says it
 * otherwise), or it is not in the encoding that its attributes name.
 */
const UNREADABLE =
  /(?:open\(".*"\)|could not open '.*' for reading): Permission denied|failed to encode '|BOM is (?:required|prohibited) in '/s

/** Objects are written without waiting for the disk. Faults: git/failed, worker/tree-unusable, sys/output-too-large. */
export function makeTreeGit(runGit: RunGit, tree: RunTree, indexPath: string): TreeGit {
  return async (call) =>
    runGit({
      ...call,
      profile: 'tree',
      operation: call.args[0],
      keys: FLEETING_KEYS,
      gitDirectory: tree.storePath,
      workTree: tree.path,
      indexPath,
      cwd: tree.path,
      maxOutputBytes: LIMITS.gitListingBytes,
    }).catch((error: unknown) => {
      const isTheirs = isFault(error) && UNREADABLE.test(error.message)
      throw isTheirs ? treeUnusable(tree, reasonOf(error), error) : error
    })
}

/** The worker left something that cannot be published. */
export function treeUnusable(tree: Pick<RunTree, 'path'>, reason: string, cause?: unknown): Error {
  return fault('worker/tree-unusable', { reason, tree: tree.path }, cause)
}

/** What git said, for a fault: without hints and progress, on one line, bounded. */
export function explain(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).map((line) => line.trim())
  const telling = lines.filter((line) => line !== '' && !/^(?:hint:|To \S+$)/.test(line))
  const text = telling.join(' ')
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text
}

async function runGit(operator: Environment, timeoutMs: number, call: GitCall): Promise<GitOutput> {
  const profile = PROFILES[call.profile]
  const keys = { ...profile.keys, ...call.keys }
  const result = await runProcess({
    argv: ['git', ...keyArguments(keys), ...call.args],
    cwd: call.cwd ?? '/',
    env: {
      ...profile.environment(operator),
      ...settingsEnvironment(call.settings ?? []),
      ...locations(call),
      ...ownerMark(ownIdentity()),
      ...call.env,
    },
    ...(call.input === undefined ? {} : { input: call.input }),
    timeoutMs,
    maxOutputBytes: call.maxOutputBytes ?? LIMITS.gitOutputBytes,
    overflow: call.maxOutputBytes === undefined || call.cut === true ? 'truncate' : 'fault',
  }).catch((error: unknown) => {
    throw timedOut(error, call, timeoutMs)
  })
  const stderr = redact(
    result.stderr.subarray(0, LIMITS.gitOutputBytes).toString(),
    call.secrets ?? [],
  )
  const code = result.code ?? -1
  if ((call.answers ?? [0]).includes(code)) return { code, stdout: result.stdout, stderr }
  throw gitFault(call.operation, explain(stderr) || describeEnd(result.code, result.signal))
}

/** A failure of git. */
export function gitFault(operation: string, reason: string): Fault {
  return fault('git/failed', { operation, reason })
}

function locations(call: GitCall): Environment {
  return {
    ...(call.gitDirectory === undefined ? {} : { GIT_DIR: call.gitDirectory }),
    ...(call.workTree === undefined ? {} : { GIT_WORK_TREE: call.workTree }),
    ...(call.indexPath === undefined ? {} : { GIT_INDEX_FILE: call.indexPath }),
  }
}

function timedOut(error: unknown, call: GitCall, timeoutMs: number): unknown {
  if (!isFault(error) || error.code !== 'sys/process-timeout') return error
  const reason = `it did not finish within ${timeoutMs / 1000} s and was ended`
  return fault('git/failed', { operation: call.operation, reason, timedOut: true }, error)
}

function describeEnd(code: number | null, signal: string | null): string {
  return code === null ? `it was ended by ${signal ?? 'a signal'}` : `it ended with ${code}`
}

async function requireRecentGit(operator: Environment, timeoutMs: number): Promise<void> {
  const { stdout } = await runProcess({
    argv: ['git', '--version'],
    env: PROFILES.tree.environment(operator),
    timeoutMs,
  })
  const text = stdout.toString().trim()
  const version = parseGitVersion(text)
  if (version === null || !isRecentEnough(version)) {
    throw fault('git/too-old', { found: text.replace(/^git version /, ''), wanted: OLDEST_GIT })
  }
}

/** GIT_CONFIG_GLOBAL; everything else we use is older. Ubuntu 22.04 has 2.34. */
const OLDEST = [2, 32] as const

const OLDEST_GIT = OLDEST.join('.')

/** The version in the output of `git --version`, or null when it is none. */
export function parseGitVersion(output: string): readonly [number, number] | null {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(output) ?? []
  return major === undefined || minor === undefined ? null : [Number(major), Number(minor)]
}

export function isRecentEnough([major, minor]: readonly [number, number]): boolean {
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
}
