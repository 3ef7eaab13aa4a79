import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'

/** A second process of a test; `said` collects its standard output. */
export type Actor = Readonly<{
  process: ChildProcess
  said: () => string
  /** Resolves with everything said, when the actor and its pipes have ended. */
  ended: () => Promise<string>
  kill: () => Promise<void>
}>

export type StartActor = (args: readonly string[], options?: SpawnOptions) => Actor

/** Actors of one test file; `endAll` after each test leaves none behind, also when it failed. */
export function actorsOf(path: string): { start: StartActor; endAll: () => Promise<void> } {
  const started: Actor[] = []
  return {
    start: (args, options) => {
      const actor = startActor(path, args, options)
      started.push(actor)
      return actor
    },
    endAll: async () => {
      await Promise.all(started.splice(0).map((actor) => actor.kill()))
    },
  }
}

/** Starts a bundled fixture (see bundle-fixture.ts) with a bare environment. */
export function startActor(
  path: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Actor {
  const child = spawn(process.execPath, [path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
    env: { PATH: process.env['PATH'], ...options.env },
  })
  let said = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const closed = once(child, 'close')
  return {
    process: child,
    said: () => said,
    ended: async () => {
      await closed
      return said
    },
    kill: async () => {
      child.kill('SIGKILL')
      await closed
    },
  }
}
