import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Clock } from '../core/ports.ts'
import { isLocked } from './kernel-lock.ts'
import { realPath } from './paths.ts'
import {
  cwdOf,
  environmentOf,
  listProcesses,
  ownIdentity,
  type ProcessIdentity,
} from './process-identity.ts'
import type { ProcessEntry } from './process-source.ts'
import { killIdentity, killSession } from './terminate.ts'

// Programs we start lead sessions of their own, so that they can be ended with all they start; that is also
// why they go on when we are killed. They carry a mark by which whoever comes next finds them (P§1).

const VARIABLE = 'CADUCEUS_OWNER'
/** What git and ssh keep for everybody: a credential cache, a shared connection. They act for no one run. */
const SHARED = /credential-cache--daemon|^ssh: .*\[mux\]/
const MAX_ROUNDS = 20

/** For the environment of a program that acts for this process. */
export function ownerMark(owner: ProcessIdentity): Readonly<Record<string, string>> {
  return { [VARIABLE]: valueOf(owner) }
}

/**
 * SIGKILLs a process by its identity, its session, and whatever carries its mark; returns how many were
 * hit. Where the platform does not show others' environments, only the former two are (macOS).
 */
export function killOwned(owner: ProcessIdentity): number {
  let hit = killSession(owner)
  // What is hit may just have started another; each round needs a living one, so few suffice.
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const left = processesWithVariable(VARIABLE, valueOf(owner)).filter(
      ({ pid }) => !SHARED.test(commandLineOf(pid)),
    )
    const killed = left.filter((process) => killIdentity(process, 'SIGKILL')).length
    if (killed === 0) break
    hit += killed
  }
  return hit
}

function valueOf({ bootId, pid, startTicks }: ProcessIdentity): string {
  return `${bootId}/${pid}/${startTicks}`
}

// Which processes have to do with something, as far as this user may see (proc(5)); none where the
// platform does not tell. Ended, uncollected ones do not count.

/** Proc(5) adds this to the name of a file that was removed meanwhile. */
const REMOVED = ' (deleted)'

/** Processes that have a file open; one that is absent is open nowhere. */
export function processesHolding(path: string): readonly ProcessIdentity[] {
  const real = orNull(() => realPath(path))
  return real === null ? [] : find((entry) => holds(entry.pid, real))
}

/** Processes whose working directory is a folder or below it. */
export function processesWorkingIn(folder: string): readonly ProcessIdentity[] {
  const real = orNull(() => realPath(folder)) ?? folder
  return find((entry) => {
    const cwd = orNull(() => cwdOf(entry.pid))
    return cwd !== null && `${withoutMark(cwd)}/`.startsWith(`${real}/`)
  })
}

/** Processes that were started with a variable of exactly this value. */
export function processesWithVariable(name: string, value: string): readonly ProcessIdentity[] {
  return find((entry) => orNull(() => environmentOf(entry.pid))?.[name] === value)
}

/** What a process was started with, its parts separated by spaces; '' = it has ended, or may not be seen. */
export function commandLineOf(pid: number): string {
  const text = orNull(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  return (text ?? '').replaceAll('\0', ' ').trim()
}

/** Processes of a session. */
export function processesOfSession(session: number): readonly ProcessIdentity[] {
  return find((entry) => entry.session === session)
}

/** This process and the ones above it, as pids. */
export function ownAncestry(): ReadonlySet<number> {
  const parents = new Map(listProcesses().map(({ pid, ppid }) => [pid, ppid]))
  const found = new Set<number>()
  for (let pid = ownIdentity().pid; pid > 0 && !found.has(pid); pid = parents.get(pid) ?? 0) {
    found.add(pid)
  }
  return found
}

function find(matches: (entry: ProcessEntry) => boolean): readonly ProcessIdentity[] {
  const { bootId } = ownIdentity()
  return listProcesses()
    .filter((entry) => !entry.isZombie && matches(entry))
    .map(({ pid, startTicks, session }) => ({ pid, startTicks, session, bootId }))
}

function holds(pid: number, real: string): boolean {
  const folder = `/proc/${pid}/fd`
  const descriptors = orNull(() => readdirSync(folder)) ?? []
  return descriptors.some((fd) => orNull(() => readlinkSync(`${folder}/${fd}`)) === real)
}

function withoutMark(path: string): string {
  return path.endsWith(REMOVED) ? path.slice(0, -REMOVED.length) : path
}

/**
 * A process may end while it is looked at, others' cannot be seen, a folder may be too deep to be named:
 * all mean "not it". One odd process must not keep us from finding the others.
 */
function orNull<T>(look: () => T | null): T | null {
  try {
    return look()
  } catch {
    return null
  }
}

/** How long the lock of a killed process may take to fall (P§1). */
const FALL_MS = 5000
const PAUSE_MS = 50

/**
 * Kills the process that holds a lock beyond every time it can rightly need, and returns whether the lock
 * is free then. The recorded process, whose identity is compared, goes first, with all that acts for it.
 * When it is not known, or another one holds the lock, that one is hit; somebody who only probes the lock
 * does not hold it for long. This process and the ones above it are spared.
 * @param recorded who took the lock, as far as it is known
 * Faults: sys/io, sys/native-unavailable.
 */
export async function endLockHolder(
  clock: Clock,
  path: string,
  recorded: ProcessIdentity | null,
): Promise<boolean> {
  if (recorded !== null) killOwned(recorded)
  const isFree = recorded !== null && (await waitUntilFree(clock, path, FALL_MS / 5))
  if (isFree) return true
  for (const holder of await holdersOf(clock, path)) killIdentity(holder, 'SIGKILL')
  return waitUntilFree(clock, path, FALL_MS)
}

async function holdersOf(clock: Clock, path: string): Promise<readonly ProcessIdentity[]> {
  const first = new Set(processesHolding(path).map(({ pid }) => pid))
  await clock.sleep(PAUSE_MS)
  const spared = ownAncestry()
  return processesHolding(path).filter(({ pid }) => first.has(pid) && !spared.has(pid))
}

/** Time is counted in sleeps: a clock that is set meanwhile must not end the wait. */
async function waitUntilFree(clock: Clock, path: string, waitMs: number): Promise<boolean> {
  for (let waited = 0; isLocked(path); waited += PAUSE_MS) {
    if (waited >= waitMs) return false
    await clock.sleep(PAUSE_MS)
  }
  return true
}
