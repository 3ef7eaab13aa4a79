import { closeSync, constants, openSync, readSync } from 'node:fs'
import { constants as systemConstants } from 'node:os'
import { isFaultOf, reasonOf } from '../core/fault.ts'
import { fileStatus, isDirectory } from './files.ts'
import { errorCode, ioFault } from './io-fault.ts'
import { canSpawnChild, type Reaped, reap, spawnChild } from './native.ts'
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts'

export type WorkerRequest = Readonly<{
  /** The program is a path; it is not searched for. */
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
  /** Looks whether it has ended, where only we can see that; `exited` tells. */
  collect(): void
  /** SIGKILLs its process group at one stroke, as long as it is not collected. */
  killGroup(): void
}>

export type SpawnOutcome =
  | Readonly<{ kind: 'spawned'; worker: WorkerProcess }>
  /** `cause` is the system's code ('ENOENT', 'EACCES', 'E2BIG') where that says enough, else a text. */
  | Readonly<{ kind: 'failed'; cause: string }>

/** Starts a worker without a shell, in its own session, with an empty stdin. The caller keeps its descriptors. */
export function spawnWorker(request: WorkerRequest): SpawnOutcome | Promise<SpawnOutcome> {
  return canSpawnChild() ? spawnOwnChild(request) : spawnChildOfNode(request)
}

const NOT_EXECUTABLE = 'it is neither a program of this machine nor a script with a #! line'

/**
 * A child that Node knows nothing of. Node tells a death by a signal without a name (SIGRTMIN+n) as exit 0,
 * which would pass for a success.
 */
function spawnOwnChild({ argv, cwd, env, outputFd, lockFd }: WorkerRequest): SpawnOutcome {
  const texts = [...argv, ...Object.entries(env).flat()]
  if (texts.some((text) => text.includes('\0'))) {
    return { kind: 'failed', cause: 'an argument or a variable has a NUL character' }
  }
  const spawned = spawnIn(cwd, () => spawnChild(argv, env, [null, outputFd, outputFd, lockFd]))
  if (typeof spawned === 'number') return { kind: 'spawned', worker: ownChild(spawned) }
  if (spawned === 'ENOEXEC') return { kind: 'failed', cause: NOT_EXECUTABLE }
  // ENOENT is also told of a script whose interpreter is missing.
  const lacksInterpreter = spawned === 'ENOENT' && isDirectory(cwd) && fileStatus(argv[0]) !== null
  const cause = lacksInterpreter ? 'its interpreter is missing' : spawned
  return { kind: 'failed', cause }
}

/** One thread, and no gap: nobody else sees the folder change. */
function spawnIn(cwd: string, spawn: () => number | string): number | string {
  try {
    process.chdir(cwd)
  } catch (error) {
    return errorCode(error) ?? 'ENOENT'
  }
  try {
    return spawn()
  } finally {
    process.chdir('/')
  }
}

function ownChild(pid: number): WorkerProcess {
  const { promise: exited, resolve } = withResolvers<WorkerExit>()
  const state = { isCollected: false }
  return {
    pid,
    exited,
    collect: () => {
      const ended = state.isCollected ? null : reap(pid)
      if (ended === null) return
      state.isCollected = true
      resolve({ exitCode: ended.exitCode, signal: signalName(ended) })
    },
    killGroup: () => {
      // Collected, its number may be another group's.
      if (!state.isCollected) killGroupOf(pid)
    },
  }
}

function killGroupOf(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (errorCode(error) === 'ESRCH' || errorCode(error) === 'EPERM') return
    throw ioFault('Signalling', `process group ${pid}`, error)
  }
}

/** Real-time signals have no names; they are counted from the first one that the C library leaves to programs. */
const FIRST_REAL_TIME = 34

function signalName({ signal }: Reaped): string | null {
  if (signal === null) return null
  const known = Object.entries(systemConstants.signals).find(([, number]) => number === signal)
  if (known !== undefined) return known[0]
  const above = signal - FIRST_REAL_TIME
  return above < 0 ? `signal ${signal}` : `SIGRTMIN+${above}`
}

function withResolvers<T>(): Readonly<{ promise: Promise<T>; resolve: (value: T) => void }> {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

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

async function spawnChildOfNode(request: WorkerRequest): Promise<SpawnOutcome> {
  const { argv, cwd, env, outputFd, lockFd } = request
  if (wouldBeGivenToShell(argv[0])) {
    return { kind: 'failed', cause: NOT_EXECUTABLE }
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
  const collect = (): void => {}
  return { kind: 'spawned', worker: { pid: child.pid, exited, collect, killGroup } }
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
  const isKnown = isFaultOf(thrown, 'sys/spawn-failed') || isFaultOf(thrown, 'sys/io')
  const code = isKnown ? thrown.details.code : null
  // ENOENT is also told of a script whose interpreter is missing; then only the reason says it.
  const isPresent = program.startsWith('/') && fileStatus(program) !== null
  return code === null || code === undefined || (code === 'ENOENT' && isPresent)
    ? reasonOf(thrown)
    : code
}
