import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { errorCode, ioFault } from './io-fault.ts'

/**
 * Lets `fill` make a new file beside `path` (it must create, fill and sync it), renames it over
 * `path` and syncs the folder so that the name lasts. The new file is removed when anything fails.
 * Faults: sys/io.
 */
export function replaceFile(path: string, fill: (temporary: string) => void): void {
  const folder = dirname(path)
  // Only to be unlike others; loading node:crypto for it would cost the supervisor a tenth of its start.
  const random = Math.floor(Math.random() * 2 ** 48)
    .toString(16)
    .padStart(12, '0')
  const temporary = join(folder, `.${basename(path)}.${process.pid}.${random}.tmp`)
  try {
    fill(temporary)
    renameSync(temporary, path)
    syncPath(folder)
  } catch (error) {
    removeQuietly(temporary)
    throw ioFault('Writing', path, error)
  }
}

/**
 * Replaces the content of a file that is not ours in one durable step; permissions, owner and group stay.
 * Faults: sys/io, also when they cannot be preserved, when the file has other names (hard links) or is none, and
 * when its content is not `expected` any more.
 */
export function rewriteFile(path: string, expected: Uint8Array, data: Uint8Array): void {
  replaceFile(path, (temporary) => {
    const before = lstatSync(path)
    if (!before.isFile()) throw new Error('not a regular file')
    if (before.nlink > 1) throw new Error('it has other names (hard links)')
    const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    try {
      writeFileSync(fd, data)
      const made = fstatSync(fd)
      if (made.uid !== before.uid || made.gid !== before.gid) {
        fchownSync(fd, before.uid, before.gid)
      }
      fchmodSync(fd, before.mode & 0o7777)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    if (!readFileSync(path).equals(expected)) throw new Error('it has just been changed')
  })
}

/** Removes the garbage of killed processes beside a file they were replacing. Faults: sys/io. */
export function removeUnfinished(path: string): void {
  const [folder, start] = [dirname(path), `.${basename(path)}.`]
  try {
    for (const name of readdirSync(folder)) {
      const [, pid] = /^(\d+)\.[0-9a-f]{12}\.tmp$/.exec(name.slice(start.length)) ?? []
      const isOurs = name.startsWith(start) && pid !== undefined
      if (isOurs && !isRunning(Number(pid))) removeQuietly(join(folder, name))
    }
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw ioFault('Listing', folder, error)
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** Waits until a file or folder is on its device. What Node throws passes through. */
export function syncPath(path: string): void {
  const fd = openSync(path, constants.O_RDONLY)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made, or was renamed already; the first error is the one worth telling.
  }
}
