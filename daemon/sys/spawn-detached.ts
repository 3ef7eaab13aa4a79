import { Writable } from 'node:stream'
import { fault } from '../core/fault.ts'
import { type StartedProcess, signalGroup, startProcess } from './start-process.ts'

export type DetachedRequest = Readonly<{
  argv: readonly [string, ...string[]]
  /** The whole environment; nothing is inherited. */
  env: Readonly<Record<string, string>>
  /** Default: the root folder, so that no folder is kept busy. */
  cwd?: string
  /** By index of the child's descriptor; a number = a descriptor of ours, which stays open here. */
  stdio: readonly ('ignore' | number)[]
  /** A text the child reads to its end from descriptor `fd`, which `stdio` leaves out or ignores. */
  input?: Readonly<{
    fd: number
    text: string
    /** Awaited when the program runs and before it gets the text; must not throw. */
    before?: (pid: number) => Promise<unknown>
  }>
}>

/** A reader that does not take its input for so long will not take it at all. */
const INPUT_WAIT_MS = 5000

/**
 * Starts a program that outlives us, in its own session. It is running when this resolves, the input
 * has been handed to the system whole, and nothing keeps this process from exiting. Descriptors given
 * by number are still open here: close those that carry a lock at once (PROTOCOLS, Locks and hand-over).
 * Faults: sys/spawn-failed; sys/process-timeout when the input was not taken (the child is ended).
 */
export async function spawnDetached(request: DetachedRequest): Promise<{ pid: number }> {
  const { argv, env, cwd = '/', input } = request
  const stdio: ('ignore' | 'pipe' | number)[] = [...request.stdio]
  // What is not named would become a pipe to us, which breaks when we exit.
  while (stdio.length < Math.max(3, input?.fd ?? 0)) stdio.push('ignore')
  if (input !== undefined) stdio[input.fd] = 'pipe'
  const child = await startProcess({ argv, env, cwd, stdio })
  child.unref()
  if (input !== undefined) await deliver(child, input, argv[0])
  return { pid: child.pid }
}

async function deliver(
  child: StartedProcess,
  input: NonNullable<DetachedRequest['input']>,
  program: string,
): Promise<void> {
  const pipe = child.stdio[input.fd]
  if (!(pipe instanceof Writable)) throw fault('sys/spawn-failed', { program, reason: 'no pipe' })
  // A child that ends without reading is no fault of the start; its free lock shows that it is gone.
  pipe.on('error', () => {})
  await input.before?.(child.pid)
  // It has ended meanwhile, and its pipe with it.
  if (pipe.destroyed) return
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    pipe.destroy()
  }, INPUT_WAIT_MS)
  await new Promise<void>((resolve) => {
    // `finish`: the system has all of it. `close`: it never will.
    pipe.once('finish', resolve)
    pipe.once('close', resolve)
    pipe.end(input.text)
  })
  clearTimeout(timer)
  pipe.destroy()
  // Closed early means that the child has ended, though Node may not have collected it yet.
  if (!isLate || !signalGroup(child, 'SIGKILL')) return
  throw fault('sys/process-timeout', { program, seconds: INPUT_WAIT_MS / 1000 })
}
