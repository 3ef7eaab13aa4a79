// Which process exactly: a pid alone may mean another process tomorrow. Identities serve to end processes;
// only its locks show whether a run lives (PROTOCOLS, Locks and hand-over).

import { ioFault } from './io-fault.ts'
import type { ProcessEntry } from './process-entry.ts'
import { processSource } from './process-source.ts'

/** One process for ever: no other one has the same pid, start and boot. */
export type ProcessIdentity = Readonly<{
  pid: number
  /** In the unit of the platform (see ProcessEntry); only ever compared. */
  startTicks: number
  bootId: string
  /** Session id: the pid of the session's leader. */
  session: number
}>

/** The identity of a process now; null when there is none (an ended, uncollected one counts as none). */
export function identifyProcess(pid: number): ProcessIdentity | null {
  const entry = processSource().entry(pid)
  if (entry === null || entry.isZombie) return null
  const { startTicks, session } = entry
  return { pid, startTicks, bootId: currentBootId(), session }
}

/** This process's own identity. Faults: sys/io when the system does not list it. */
export function ownIdentity(): ProcessIdentity {
  const identity = identifyProcess(process.pid)
  if (identity === null) throw ioFault('Looking at', 'this process', 'the system does not list it')
  return identity
}

/** Whether this very process still runs: the same boot, pid and start. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid)
  return now !== null && now.startTicks === identity.startTicks && now.bootId === identity.bootId
}

/** Names this boot of the machine; identities of an earlier one mean nothing any more. */
export function currentBootId(): string {
  return processSource().bootId()
}

/** Every process this user can see, zombies included. */
export function listProcesses(): readonly ProcessEntry[] {
  return processSource().list()
}

/**
 * Pids of a process's children, zombies included: [] means it has none. Children that come or go
 * meanwhile may be missing, so ask again before believing an empty answer.
 */
export function childrenOf(pid: number): number[] {
  const source = processSource()
  const direct = source.children(pid)
  if (direct !== null) return direct
  return source
    .list()
    .filter((entry) => entry.ppid === pid)
    .map((entry) => entry.pid)
}

/** The environment a process was started with; null when this user may not see it. */
export function environmentOf(pid: number): Readonly<Record<string, string>> | null {
  return processSource().environment(pid)
}

/**
 * The folder a process works in, or the deepest one above it that has a name; null when this user may not see it.
 */
export function cwdOf(pid: number): string | null {
  return processSource().workingDirectory(pid)
}
