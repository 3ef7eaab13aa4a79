import { randomBytes } from 'node:crypto'
import { closeSync, constants, fsyncSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ioFault } from './io-fault.ts'

/**
 * Lets `fill` make a new file beside `path` (it must create, fill and sync it), renames it over
 * `path` and syncs the folder so that the name lasts. The new file is removed when anything fails.
 * Faults: sys/io.
 */
export function replaceFile(path: string, fill: (temporary: string) => void): void {
  const folder = dirname(path)
  const random = randomBytes(6).toString('hex')
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
