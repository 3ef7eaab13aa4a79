import { realPath } from './paths.ts'
import type { ProcessEntry } from './process-entry.ts'
import { listProcesses, ownIdentity, type ProcessIdentity } from './process-identity.ts'
import { processSource } from './process-source.ts'

// Which processes have to do with something, as far as this user may see; none where the platform does not
// tell (macOS knows sessions only). Ended, uncollected ones do not count. A process of which a fact cannot be
// had is "not it" and hinders no search.

/** Processes that have a file open; one that is absent is open nowhere. */
export function processesHolding(path: string): readonly ProcessIdentity[] {
  const real = realPathOrNull(path)
  return real === null ? [] : find(({ pid }) => processSource().openFiles(pid).includes(real))
}

/** Processes whose working directory is a folder or below it, however deep. */
export function processesWorkingIn(folder: string): readonly ProcessIdentity[] {
  const real = realPathOrNull(folder) ?? folder
  return find(({ pid }) => {
    const directory = processSource().workingDirectory(pid)
    return directory !== null && `${directory}/`.startsWith(`${real}/`)
  })
}

/** Processes that were started with a variable of exactly this value. */
export function processesWithVariable(name: string, value: string): readonly ProcessIdentity[] {
  return find(({ pid }) => processSource().environment(pid)?.[name] === value)
}

/** What a process was started with, its parts separated by spaces; '' = it has ended, or may not be seen. */
export function commandLineOf(pid: number): string {
  return processSource().commandLine(pid)
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

/** null = nothing is there, or it cannot be named. */
function realPathOrNull(path: string): string | null {
  try {
    return realPath(path)
  } catch {
    return null
  }
}
