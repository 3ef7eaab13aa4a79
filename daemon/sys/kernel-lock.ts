// Kernel locks: a held lock is the only evidence that its owner lives (I4; PROTOCOLS, Locks and hand-over). The
// lock belongs to the open file description, so it passes to a child with the descriptor and ends with the last
// copy of it, however its holders die. Nothing here unlocks: an unlock through one copy would free them all.

import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { fault } from '../core/fault.ts'
import type { Clock } from '../core/ports.ts'
import { flock } from './flock.ts'
import { errorCode, ioFault } from './io-fault.ts'

const OPEN_FLAGS =
  constants.O_RDWR |
  constants.O_CREAT |
  constants.O_APPEND |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK
const PROBE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Tries while the file is replaced under us, or only probes are in the way. */
const MAX_TRIES = 100
const PROBE_PAUSE_MS = 1
const LONGEST_POLL_MS = 50

/** An exclusive lock this process holds. */
class KernelLock {
  readonly path: string
  /** The descriptor that carries the lock: given to a child it hands the lock over. */
  readonly fd: number
  #isOpen = true

  constructor(path: string, fd: number) {
    this.path = path
    this.fd = fd
  }

  /** Whether the file on disk is still the one that is locked here. */
  isCurrent(): boolean {
    return this.#isOpen && isSameFile(this.fd, this.path)
  }

  /** Replaces the file's content: a note for people, never evidence. Faults: sys/io. */
  writeNote(text: string): void {
    if (!this.#isOpen) throw ioFault('Writing', this.path, 'the lock was given up')
    try {
      ftruncateSync(this.fd, 0)
      writeSync(this.fd, text)
    } catch (error) {
      throw ioFault('Writing', this.path, error)
    }
  }

  /** Removes the file while the lock is held, then gives it up. A file that replaced it stays. */
  remove(): void {
    try {
      if (this.isCurrent()) unlinkSync(this.path)
    } catch (error) {
      throw ioFault('Removing', this.path, error)
    } finally {
      this.close()
    }
  }

  /** Gives up this process's copy; copies of other processes keep the lock. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    closeSync(this.fd)
  }
}

export type { KernelLock }

/**
 * Takes a lock without waiting, creating its file (0600); null = it is held.
 * Faults: sys/io (also for a symbolic link or anything but a regular file), sys/native-unavailable.
 */
export function tryLock(path: string): KernelLock | null {
  const fd = retry(path, () => {
    const opened = open(path, OPEN_FLAGS)
    if (opened === null) throw ioFault('Locking', path, 'its folder is missing')
    const state = examine(opened, path, 'exclusive')
    if (state === 'granted') return opened
    // A holder refuses a shared lock too; a probe of `isLocked`, gone in microseconds, does not.
    const isHeld = state === 'busy' && examine(opened, path, 'shared') === 'busy'
    closeSync(opened)
    if (isHeld) return 'held'
    if (state === 'busy') pauseThread(PROBE_PAUSE_MS)
    return null
  })
  return fd === 'held' ? null : new KernelLock(path, fd)
}

/**
 * Takes a lock, waiting at most `waitMs`.
 * Faults: state/lock-busy when the time is over, and those of `tryLock`.
 */
export async function waitForLock(clock: Clock, path: string, waitMs: number): Promise<KernelLock> {
  let pollMs = 5
  // Time is counted in sleeps: a clock that is set meanwhile must not end the wait.
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const lock = tryLock(path)
    if (lock !== null) return lock
    if (waitedMs >= waitMs) throw fault('state/lock-busy', { path, seconds: waitMs / 1000 })
    pollMs = Math.min(pollMs * 2, LONGEST_POLL_MS, waitMs - waitedMs)
    await clock.sleep(pollMs)
  }
}

/**
 * The receiving end of a hand-over: the lock behind a descriptor this process was started with.
 * null = the descriptor is not the file at `path`, or another process has the lock; it stays open.
 */
export function inheritLock(fd: number, path: string): KernelLock | null {
  // Granted again when our description holds it already; a description without it would get it here.
  return isSameFile(fd, path) && flock(fd, 'exclusive') ? new KernelLock(path, fd) : null
}

/**
 * Whether any process holds the lock. Creates nothing; an absent file is not locked.
 * Faults: sys/io, sys/native-unavailable.
 */
export function isLocked(path: string): boolean {
  return retry(path, () => {
    const fd = open(path, PROBE_FLAGS)
    if (fd === null) return false
    const state = examine(fd, path, 'shared')
    closeSync(fd)
    return state === 'replaced' ? null : state === 'busy'
  })
}

/** Repeats while nothing can be said (null), which ends unless another process prevents it on purpose. */
function retry<T>(path: string, attempt: () => T | null): T {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const found = attempt()
    if (found !== null) return found
  }
  throw ioFault('Locking', path, 'it is replaced or probed all the time')
}

/** A lock says something only of the file that is there now, so the path is looked up after it. */
function examine(
  fd: number,
  path: string,
  operation: 'shared' | 'exclusive',
): 'granted' | 'busy' | 'replaced' {
  try {
    if (!fstatSync(fd).isFile()) throw ioFault('Locking', path, 'not a regular file')
    if (!flock(fd, operation)) return 'busy'
    return isSameFile(fd, path) ? 'granted' : 'replaced'
  } catch (error) {
    // After a fault no descriptor may stay open that may hold the lock.
    closeSync(fd)
    throw error
  }
}

function open(path: string, flags: number): number | null {
  try {
    return openSync(path, flags, 0o600)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') return null
    throw ioFault('Locking', path, code === 'ELOOP' ? 'a symbolic link' : error)
  }
}

function isSameFile(fd: number, path: string): boolean {
  const opened = statOrNull(() => fstatSync(fd, { bigint: true }))
  const named = statOrNull(() => lstatSync(path, { bigint: true }))
  if (opened === null || named === null) return false
  return opened.ino === named.ino && opened.dev === named.dev && named.isFile()
}

function statOrNull(ask: () => BigIntStats): BigIntStats | null {
  try {
    return ask()
  } catch {
    return null
  }
}

function pauseThread(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
