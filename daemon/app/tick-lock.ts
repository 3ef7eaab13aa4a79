import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import { plausibleWait, toTimestamp } from '../core/timestamp.ts'
import type { StateLayout } from '../state/layout.ts'
import { readFileBounded } from '../sys/files.ts'
import { type KernelLock, tryLock, waitForLock } from '../sys/kernel-lock.ts'
import { endLockHolder } from '../sys/lock-holder.ts'
import { ownIdentity, type ProcessIdentity } from '../sys/process-identity.ts'

/** How long a command waits for a tick that is planning. */
const MAINTENANCE_WAIT_MS = 30_000
/** A process that exceeds its time by this much is stopped or hung. */
const GRACE_MS = 10_000
/** From taking the lock to having written the note, on a machine that is very busy. */
const NOTE_PAUSE_MS = 500

type Parts = Readonly<{ clock: Clock; layout: StateLayout }>

/**
 * The lock that lets one process plan. A holder that exceeds its time is killed first, so that one stopped tick
 * does not block all later ones (PROTOCOLS, Locks and hand-over). Null = another process is planning.
 * Faults: sys/io, sys/native-unavailable.
 */
export async function takeTickLock(parts: Parts): Promise<KernelLock | null> {
  const { clock, layout } = parts
  const lock = tryLock(layout.tickLock) ?? (await takeFromHung(parts))
  lock?.writeNote(noteOf(clock.now()))
  return lock
}

/**
 * The same lock for a command that changes the queue. It waits for a tick that is planning.
 * Faults: state/lock-busy, sys/io, sys/native-unavailable.
 */
export async function waitForTickLock(parts: Parts): Promise<KernelLock> {
  const taken = await takeTickLock(parts)
  if (taken !== null) return taken
  const lock = await waitForLock(parts.clock, parts.layout.tickLock, MAINTENANCE_WAIT_MS)
  lock.writeNote(noteOf(parts.clock.now()))
  return lock
}

async function takeFromHung({ clock, layout }: Parts): Promise<KernelLock | null> {
  const note = readNote(layout.tickLock)
  if (note === null || !isOver(note.until, clock.now())) return null
  // A process that took the lock a moment ago has not written its own note yet.
  await clock.sleep(NOTE_PAUSE_MS)
  if (readNote(layout.tickLock)?.until !== note.until) return null
  if (!(await endLockHolder(clock, layout.tickLock, note.holder))) {
    throw fault('state/lock-busy', { path: layout.tickLock, seconds: LIMITS.tickMs / 1000 })
  }
  return tryLock(layout.tickLock)
}

/** A time too far ahead shows that the clock was set back; that holder counts as over its time as well. */
function isOver(until: string, now: number): boolean {
  const at = plausibleWait(until, now, LIMITS.tickMs + GRACE_MS)
  return at === null || now > at + GRACE_MS
}

type Note = Readonly<{ holder: ProcessIdentity; until: string }>

function noteOf(now: number): string {
  const note: Note = { holder: ownIdentity(), until: toTimestamp(now + LIMITS.tickMs) }
  return `${JSON.stringify(note)}\n`
}

/** Null = no note is written yet, or it is not ours; then the holder counts as alive. */
function readNote(path: string): Note | null {
  const text = readFileBounded(path, LIMITS.claimBytes)?.toString('utf8') ?? ''
  let note: unknown
  try {
    note = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof note !== 'object' || note === null) return null
  const { holder, until }: { holder?: unknown; until?: unknown } = note
  const process = processOf(holder)
  if (process === null || typeof until !== 'string' || Number.isNaN(Date.parse(until))) return null
  return { holder: process, until }
}

function processOf(value: unknown): ProcessIdentity | null {
  if (typeof value !== 'object' || value === null) return null
  const fields: Partial<Record<keyof ProcessIdentity, unknown>> = value
  const { pid, startTicks, session, bootId } = fields
  const isWhole = isInteger(pid) && isInteger(startTicks) && isInteger(session)
  return isWhole && typeof bootId === 'string' ? { pid, startTicks, session, bootId } : null
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}
