// How git is run on a bare repository.

import { execFile } from 'node:child_process'
import { fault } from '../daemon/core/fault.ts'
import { environment } from '../daemon/sys/environment.ts'

const TIMEOUT_MS = 60_000
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

type GitOutcome = Readonly<{ code: number; stdout: string; stderr: string }>

/**
 * Runs git on a bare repository and returns its outcome, also when it fails. Configuration of the
 * machine and of the user plays no part. Faults: git/failed when it cannot run or takes too long.
 * @param path the bare repository
 * @param options input is given to its standard input; env is laid over the clean environment
 */
export function tryGit(
  path: string,
  args: readonly string[],
  options: Readonly<{ input?: string | Buffer; env?: Readonly<Record<string, string>> }> = {},
): Promise<GitOutcome> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      'git',
      ['--git-dir', path, ...args],
      {
        cwd: '/',
        env: { ...cleanEnvironment(), ...options.env },
        timeout: TIMEOUT_MS,
        killSignal: 'SIGKILL',
        maxBuffer: MAX_OUTPUT_BYTES,
      },
      (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, stdout, stderr })
        else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr })
        else reject(fault('git/failed', { operation: operationOf(args), reason: error.message }))
      },
    )
    // git may end without reading all of its input; its exit status then says why.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(options.input ?? '')
  })
}

/** As `tryGit`, for what has to succeed: its standard output. Faults: git/failed. */
export async function git(
  path: string,
  args: readonly string[],
  options: Parameters<typeof tryGit>[2] = {},
): Promise<string> {
  const { code, stdout, stderr } = await tryGit(path, args, options)
  if (code === 0) return stdout
  throw fault('git/failed', { operation: operationOf(args), reason: stderr.trim() })
}

const operationOf = (args: readonly string[]): string =>
  args.find((arg) => !arg.startsWith('-')) ?? 'git'

/** Of the environment only what git needs to be found and to run; no GIT_* leaks in. */
function cleanEnvironment(): Readonly<Record<string, string>> {
  const env = environment()
  return {
    PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    LC_ALL: 'C',
    TZ: 'UTC',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
  }
}
