import { closeSync, constants, openSync, readSync } from 'node:fs'
import { describeThrown, isFault } from '../core/fault.ts'
import { fileStatus } from './files.ts'
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts'

export type WorkerRequest = Readonly<{
  argv: readonly [string, ...string[]]
  cwd: string
  /** Exactly this, nothing inherited. */
  env: Readonly<Record<string, string>>
  /** Write end of a pipe; becomes both output streams, so that their bytes keep their order. */
  outputFd: number
  /** Becomes descriptor 3, kept open on purpose (P§1). */
  lockFd: number
}>

export type WorkerExit = Readonly<{ exitCode: number | null; signal: string | null }>

/** A running worker: the leader of its own session and process group. */
export type WorkerProcess = Readonly<{
  pid: number
  /** Resolves when the process itself has ended, whoever still holds its pipe (C35). */
  exited: Promise<WorkerExit>
  /** SIGKILLs its process group at one stroke, as long as it is not collected. */
  killGroup(): void
}>

export type SpawnOutcome =
  | Readonly<{ kind: 'spawned'; worker: WorkerProcess }>
  /** `cause` is the system's code ('ENOENT', 'EACCES', 'E2BIG') where that says enough, else a text. */
  | Readonly<{ kind: 'failed'; cause: string }>

/** How a program begins, in hex: a script, ELF (Linux), Mach-O of either order and width, and of several machines. */
const BEGINNINGS: readonly string[] = [
  '2321',
  '7f454c46',
  'feedface',
  'feedfacf',
  'cefaedfe',
  'cffaedfe',
  'cafebabe',
  'cafebabf',
]

/** Starts a worker without a shell, in its own session, with an empty stdin. The caller keeps its descriptors. */
export async function spawnWorker(request: WorkerRequest): Promise<SpawnOutcome> {
  const { argv, cwd, env, outputFd, lockFd } = request
  if (wouldBeGivenToShell(argv[0])) {
    return { kind: 'failed', cause: 'it is neither a program nor a script with a #! line' }
  }
  let child: StartedProcess
  try {
    child = await startProcess({ argv, cwd, env, stdio: ['ignore', outputFd, outputFd, lockFd] })
  } catch (thrown) {
    return { kind: 'failed', cause: causeOf(thrown, argv[0]) }
  }
  // Listening begins in the turn of the start: an exit cannot be missed.
  const exited = new Promise<WorkerExit>((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const killGroup = (): void => void signalGroup(child, 'SIGKILL')
  return { kind: 'spawned', worker: { pid: child.pid, exited, killGroup } }
}

/**
 * What the kernel refuses to run (ENOEXEC) the C library hands to /bin/sh, also within Node: an empty file
 * would end with 0, as a success does. What cannot be read is left for the kernel to judge.
 */
function wouldBeGivenToShell(program: string): boolean {
  if (!program.startsWith('/')) return false
  try {
    const fd = openSync(program, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const head = Buffer.alloc(4)
      const text = head.toString('hex', 0, readSync(fd, head))
      return !BEGINNINGS.some((beginning) => text.startsWith(beginning))
    } finally {
      closeSync(fd)
    }
  } catch {
    return false
  }
}

function causeOf(thrown: unknown, program: string): string {
  if (!isFault(thrown)) return describeThrown(thrown)
  const { code, reason } = thrown.details
  // ENOENT is also told of a script whose interpreter is missing; then only the reason says it.
  const isPresent = program.startsWith('/') && fileStatus(program) !== null
  return code === null || code === undefined || (code === 'ENOENT' && isPresent)
    ? String(reason)
    : String(code)
}
