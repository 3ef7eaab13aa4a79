// Signals for processes known by identity, so that a pid that was given out again is never hit.

import { closeSync } from 'node:fs'
import { errorCode, ioFault } from './io-fault.ts'
import { openPidfd, signalPidfd } from './pidfd.ts'
import type { ProcessEntry } from './process-entry.ts'
import {
  currentBootId,
  identifyProcess,
  isAlive,
  listProcesses,
  type ProcessIdentity,
} from './process-identity.ts'

/** Rounds of searching for what a session forked meanwhile; each needs a living forker, so few suffice. */
const MAX_ROUNDS = 100

/**
 * Signals this very process; false = it has ended (its pid may mean another one by now, which is
 * not touched) or may not be signalled. Opens the pidfd first and compares then, so what was compared
 * is what is hit (PROTOCOLS, Ending processes); without pidfd the comparison comes last before the signal.
 */
export function killIdentity(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (identity.pid <= 1) return false
  const pidfd = openPidfd(identity.pid)
  try {
    if (!isAlive(identity)) return false
    return pidfd === null ? signalPid(identity.pid, signal) : signalPidfd(pidfd, signal)
  } finally {
    if (pidfd !== null) closeSync(pidfd)
  }
}

/**
 * SIGKILLs every process of the session a recorded process led, and returns how many were hit. They
 * have no more instructions to run when it returns, though the system may take a moment to remove
 * them. Hits nothing when the machine was booted since, when the session's id means another process
 * by now, or when the session is our own; a recorded process that led no session is hit alone.
 */
export function killSession(leader: ProcessIdentity): number {
  if (leader.session !== leader.pid) return killIdentity(leader, 'SIGKILL') ? 1 : 0
  const hit = new Set<string>()
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const fresh = sessionMembers(leader).filter((entry) => !hit.has(nameOf(entry)))
    if (fresh.length === 0) return hit.size
    for (const entry of fresh) {
      hit.add(nameOf(entry))
      killIdentity({ ...entry, bootId: leader.bootId }, 'SIGKILL')
    }
  }
  return hit.size
}

function sessionMembers(leader: ProcessIdentity): readonly ProcessEntry[] {
  if (leader.pid <= 1 || leader.bootId !== currentBootId()) return []
  if (identifyProcess(process.pid)?.session === leader.session) return []
  const entries = listProcesses()
  // The id is not given out again while a member lives, so a stranger under it proves that no member is left.
  const holder = entries.find((entry) => entry.pid === leader.pid)
  if (holder !== undefined && holder.startTicks !== leader.startTicks) return []
  return entries.filter((entry) => entry.session === leader.session && !entry.isZombie)
}

function nameOf(entry: ProcessEntry): string {
  return `${entry.pid} ${entry.startTicks}`
}

function signalPid(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if (errorCode(error) === 'ESRCH' || errorCode(error) === 'EPERM') return false
    throw ioFault('Signalling', `process ${pid}`, error)
  }
}
