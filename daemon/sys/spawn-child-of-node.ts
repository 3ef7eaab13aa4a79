import { closeSync, constants, openSync, readSync } from 'node:fs'
import { isFaultOf, reasonOf } from '../core/fault.ts'
import { fileStatus } from './files.ts'
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts'
import {
  NOT_EXECUTABLE,
  type SpawnOutcome,
  type WorkerExit,
  type WorkerRequest,
} from './worker-process.ts'

/** First bytes of a program in hex: script, ELF (Linux), Mach-O of either order and width, or of several machines. */
const FIRST_BYTES: readonly string[] = [
  '2321',
  '7f454c46',
  'feedface',
  'feedfacf',
  'cefaedfe',
  'cffaedfe',
  'cafebabe',
  'cafebabf',
]

/** Starts the worker as a child of Node, for platforms without a spawn of our own (macOS). */
export async function spawnChildOfNode(request: WorkerRequest): Promise<SpawnOutcome> {
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
 * would end with 0, as a success does. What cannot be read is left to the kernel.
 */
function wouldBeGivenToShell(program: string): boolean {
  if (!program.startsWith('/')) return false
  try {
    const fd = openSync(program, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const head = Buffer.alloc(4)
      const text = head.toString('hex', 0, readSync(fd, head))
      return !FIRST_BYTES.some((bytes) => text.startsWith(bytes))
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
  // The system says ENOENT also of a script whose interpreter is missing; then only the reason says it.
  const isPresent = program.startsWith('/') && fileStatus(program) !== null
  return code === null || code === undefined || (code === 'ENOENT' && isPresent)
    ? reasonOf(thrown)
    : code
}
