import type { ChildProcess, StdioNull, StdioPipe } from 'node:child_process'
import crossSpawn from 'cross-spawn'
import { type Fault, fault } from '../core/fault.ts'
import { fileStatus, isDirectory } from './files.ts'
import { errorCode, errorReason, ioFault } from './io-fault.ts'

/** One entry per descriptor of the child; a number = a descriptor of ours. */
export type ChildStdio = readonly (StdioNull | StdioPipe | number)[]

export type StartRequest = Readonly<{
  /** Program (found by the PATH of `env`) and its arguments; no shell ever sees them. */
  argv: readonly [string, ...string[]]
  /** Default: the root folder, so that nothing is kept busy by accident. */
  cwd?: string
  /** The whole environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
  stdio: ChildStdio
}>

export type StartedProcess = ChildProcess & { readonly pid: number }

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'not found',
  EACCES: 'permission denied',
  E2BIG: 'its arguments and environment are too long',
  ENOEXEC: 'it is no program this system can run',
}

/**
 * Starts a program as the leader of its own session and process group. Resolves once it runs
 * (execve succeeded); its `exit` event cannot have happened yet, so listeners added at once miss
 * nothing. Faults: sys/spawn-failed.
 */
export async function startProcess(request: StartRequest): Promise<StartedProcess> {
  const [program, ...args] = request.argv
  const cwd = request.cwd ?? '/'
  try {
    const child = crossSpawn(program, args, {
      cwd,
      env: request.env,
      stdio: [...request.stdio],
      detached: true,
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    if (isStarted(child)) return child
  } catch (error) {
    throw spawnFault(program, cwd, error)
  }
  throw fault('sys/spawn-failed', { program, reason: 'it has no process id' })
}

/**
 * Sends a signal to the group of a child that has not been collected yet, so its id is still its own.
 * False = it has ended.
 */
export function signalGroup(child: StartedProcess, signal: NodeJS.Signals): boolean {
  if (child.exitCode !== null || child.signalCode !== null) return false
  try {
    return process.kill(-child.pid, signal)
  } catch (error) {
    if (errorCode(error) === 'ESRCH' || errorCode(error) === 'EPERM') return false
    throw ioFault('Signalling', `process group ${child.pid}`, error)
  }
}

function isStarted(child: ChildProcess): child is StartedProcess {
  return child.pid !== undefined
}

function spawnFault(program: string, cwd: string, error: unknown): Fault {
  const code = errorCode(error)
  return fault('sys/spawn-failed', { program, code, reason: reasonOf(program, cwd, error) }, error)
}

function reasonOf(program: string, cwd: string, error: unknown): string {
  const code = errorCode(error) ?? ''
  if (code === 'ENOENT') {
    // The system says ENOENT for three different absences.
    if (!isDirectory(cwd)) return `its folder ${cwd} does not exist`
    if (program.startsWith('/') && fileStatus(program) !== null) return 'its interpreter is missing'
  }
  return REASONS[code] ?? errorReason(error)
}
