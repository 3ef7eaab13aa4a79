import { fileStatus, isDirectory } from './files.ts'
import { errorCode, ioFault } from './io-fault.ts'
import { reap } from './reap.ts'
import { signalName } from './signal-name.ts'
import { spawnChild } from './spawn-child.ts'
import {
  NOT_EXECUTABLE,
  type SpawnOutcome,
  type WorkerExit,
  type WorkerProcess,
  type WorkerRequest,
} from './worker-process.ts'

/**
 * Starts the worker as a child that Node knows nothing of. Node reports a death by a signal without a name
 * (SIGRTMIN+n) as exit 0,
 * which would pass for a success.
 */
export function spawnOwnChild({ argv, cwd, env, outputFd, lockFd }: WorkerRequest): SpawnOutcome {
  const texts = [...argv, ...Object.entries(env).flat()]
  if (texts.some((text) => text.includes('\0'))) {
    return { kind: 'failed', cause: 'an argument or a variable has a NUL character' }
  }
  const spawned = spawnIn(cwd, () => spawnChild(argv, env, [null, outputFd, outputFd, lockFd]))
  if (typeof spawned === 'number') return { kind: 'spawned', worker: ownChild(spawned) }
  if (spawned === 'ENOEXEC') return { kind: 'failed', cause: NOT_EXECUTABLE }
  // The system says ENOENT also of a script whose interpreter is missing.
  const lacksInterpreter = spawned === 'ENOENT' && isDirectory(cwd) && fileStatus(argv[0]) !== null
  const cause = lacksInterpreter ? 'its interpreter is missing' : spawned
  return { kind: 'failed', cause }
}

/** Synchronous on the one thread, so nothing else runs while the folder is another one. */
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
      resolve({
        exitCode: ended.exitCode,
        signal: ended.signal === null ? null : signalName(ended.signal),
      })
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

function withResolvers<T>(): Readonly<{ promise: Promise<T>; resolve: (value: T) => void }> {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve }
}
