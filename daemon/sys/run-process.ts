import { type Fault, fault } from '../core/fault.ts'
import { onAbort } from './bounded-waits.ts'
import { captureHead } from './capture-head.ts'
import { currentBootId, identifyProcess } from './process-identity.ts'
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts'
import { killSession } from './terminate.ts'

// Programs that are waited for: bounded output, a deadline, and an end for everything they started in
// their own session. Descendants in a session of their own are not waited for and not ended.

export type ProcessRequest = Readonly<{
  /** Program (found by the PATH of `env`) and its arguments. */
  argv: readonly [string, ...string[]]
  /** Default: the root folder. */
  cwd?: string
  /** The whole environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
  /** Standard input; without it there is none. A program that does not read it all is no fault. */
  input?: string | Uint8Array
  timeoutMs: number
  /** Per stream; default 32 KiB. The head is retained. */
  maxOutputBytes?: number
  /** What more output means: it is dropped (default), or the program is ended with a fault. */
  overflow?: 'truncate' | 'fault'
  signal?: AbortSignal
  /** Descriptors of ours that the program gets as 3, 4, … */
  extraFds?: readonly number[]
}>

export type ProcessResult = Readonly<{
  /** null = ended by `signal`. */
  code: number | null
  signal: NodeJS.Signals | null
  stdout: Buffer
  stderr: Buffer
  /** Whether one of the streams was cut. */
  truncated: boolean
}>

type Exit = Pick<ProcessResult, 'code' | 'signal'>

const INTERRUPTION_FAULTS = {
  deadline: 'sys/process-timeout',
  abort: 'sys/process-aborted',
  overflow: 'sys/output-too-large',
} as const

type Interruption = keyof typeof INTERRUPTION_FAULTS

const DEFAULT_OUTPUT_BYTES = 32 * 1024
/** Time to exit in order (git removes its lock files) before SIGKILL. */
const TERM_GRACE_MS = 500
/** SIGKILL is immediate unless the system itself is stuck; we do not wait for that. */
const KILL_WAIT_MS = 2000
/** How long descendants may hold the pipes of a program that has ended. */
const PIPE_GRACE_MS = 1000
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Runs a program to its end. Any exit code is a result; always resolves or rejects within the
 * deadline plus about 2.5 s, even while other processes hold the pipes.
 * Faults: sys/spawn-failed, sys/process-timeout, sys/process-aborted, sys/output-too-large.
 */
export async function runProcess(request: ProcessRequest): Promise<ProcessResult> {
  if (request.signal?.aborted === true) throw interruptionFault('abort', request)
  const pipe = 'pipe' as const
  const child = await startProcess({
    ...request,
    stdio: [request.input === undefined ? 'ignore' : pipe, pipe, pipe, ...(request.extraFds ?? [])],
  })
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const closed = new Promise<'closed'>((resolve) => child.once('close', () => resolve('closed')))
  const watch = watchInterruptions(request)
  const maxBytes = request.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES
  const onTruncated = request.overflow === 'fault' ? watch.overflowed : () => {}
  const stdout = captureHead(child.stdout, maxBytes, onTruncated)
  const stderr = captureHead(child.stderr, maxBytes, onTruncated)
  try {
    feed(child, request.input)
    const first = await Promise.race([exited, watch.interrupted])
    if (typeof first === 'string') {
      await endProcess(child, exited)
      throw interruptionFault(first, request)
    }
    const drained = await within(PIPE_GRACE_MS, Promise.race([closed, watch.interrupted]))
    if (drained !== 'closed') killRemains(child)
    const truncated = stdout.isTruncated() || stderr.isTruncated()
    if (truncated && request.overflow === 'fault') throw interruptionFault('overflow', request)
    return { ...first, stdout: stdout.bytes(), stderr: stderr.bytes(), truncated }
  } finally {
    watch.stop()
    for (const stream of child.stdio) stream?.destroy()
  }
}

/** The first thing that ends the wait; `stop` frees the timer and the listener. */
function watchInterruptions(request: ProcessRequest): {
  interrupted: Promise<Interruption>
  overflowed: () => void
  stop: () => void
} {
  const { promise, resolve } = deferred<Interruption>()
  const delay = Math.min(request.timeoutMs, MAX_TIMER_MS)
  const timer = setTimeout(() => resolve('deadline'), delay)
  const stopListening = onAbort(request.signal, () => resolve('abort'))
  return {
    interrupted: promise,
    overflowed: () => resolve('overflow'),
    stop: () => {
      clearTimeout(timer)
      stopListening()
    },
  }
}

function feed(child: StartedProcess, input: string | Uint8Array | undefined): void {
  // EPIPE: the program ended or closed its input early, which is its right.
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
}

async function endProcess(child: StartedProcess, exited: Promise<Exit>): Promise<void> {
  const leader = identifyProcess(child.pid)
  signalGroup(child, 'SIGTERM')
  await within(TERM_GRACE_MS, exited)
  signalGroup(child, 'SIGKILL')
  if (leader === null) killRemains(child)
  else killSession(leader)
  await within(KILL_WAIT_MS, exited)
}

/** Ends what a collected child left in its session; no start is known, so its id must not be in use. */
function killRemains(child: StartedProcess): void {
  killSession({ pid: child.pid, session: child.pid, startTicks: -1, bootId: currentBootId() })
}

function interruptionFault(interruption: Interruption, request: ProcessRequest): Fault {
  return fault(INTERRUPTION_FAULTS[interruption], {
    program: request.argv[0],
    seconds: request.timeoutMs / 1000,
    maxBytes: request.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES,
  })
}

/** The value, or null when it takes longer. */
async function within<T>(ms: number, pending: Promise<T>): Promise<T | null> {
  const { promise, resolve } = deferred<null>()
  const timer = setTimeout(() => resolve(null), ms)
  try {
    return await Promise.race([pending, promise])
  } finally {
    clearTimeout(timer)
  }
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil
  })
  return { promise, resolve }
}
