import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

// Processes that a test starts, and what can be seen of them.

const ROOT = join(import.meta.dirname, '../..')
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);"

/**
 * Makes a program of a TypeScript fixture, for tests that need real processes. It lies inside the
 * repository, where native packages are found, unless another folder is given.
 * @param name a file of test/fixtures, or another one by its path from there; without `.ts`
 */
export function bundleFixture(
  name: string,
  folder = join(ROOT, '.tmp'),
): { path: string; remove: () => void } {
  mkdirSync(folder, { recursive: true })
  const made = mkdtempSync(join(folder, 'fixture-'))
  // Tests also run it as another user.
  chmodSync(made, 0o755)
  const path = join(made, `${basename(name)}.mjs`)
  execFileSync(join(ROOT, 'node_modules/.bin/esbuild'), [
    join(ROOT, 'test/fixtures', `${name}.ts`),
    '--bundle',
    '--platform=node',
    '--format=esm',
    '--log-level=error',
    `--banner:js=${BANNER}`,
    `--outfile=${path}`,
  ])
  return { path, remove: () => rmSync(made, { recursive: true, force: true }) }
}

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

/** Starts a bundled fixture with a bare environment. */
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

export type Sampled = Readonly<{ pid: number; command: string; where: 'argv' | 'environment' }>

/** Processes of this machine whose arguments or environment hold a text (proc(5)). */
export function processesShowing(text: string): readonly Sampled[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`)
    const shown = { argv: command, environment: read(`/proc/${pid}/environ`) }
    return (['argv', 'environment'] as const)
      .filter((where) => shown[where].includes(text))
      .map((where) => ({ pid: Number(pid), command: command.replaceAll('\0', ' ').trim(), where }))
  })
}

/** The words a process was started with; none when it has ended, even while we look. */
export function commandLineOf(pid: number): readonly string[] {
  return read(`/proc/${pid}/cmdline`).split('\0').slice(0, -1)
}

/** Looks again and again until `end`, which returns everything that was ever found. */
export function sampleProcesses(
  text: string,
): Readonly<{ end: () => Promise<readonly Sampled[]>; looks: () => number }> {
  const stop = new AbortController()
  const found: Sampled[] = []
  let looks = 0
  const sampling = (async () => {
    for (; !stop.signal.aborted; looks += 1) {
      found.push(...processesShowing(text))
      await pause(1)
    }
  })()
  return {
    end: async () => {
      stop.abort()
      await sampling
      return found
    },
    looks: () => looks,
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // it has ended meanwhile
  }
}

/**
 * Looks again and again until something is found; fails when that takes too long. What an empty file holds, as
 * text or as a number, is nothing yet: whoever makes it has not written it.
 */
export async function waitUntil<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  timeoutMs = 20_000,
): Promise<T> {
  for (const end = performance.now() + timeoutMs; ; await pause(5)) {
    const found = await look()
    if (found) return found
    assert.ok(performance.now() < end, `not within ${timeoutMs} ms: ${what}`)
  }
}
