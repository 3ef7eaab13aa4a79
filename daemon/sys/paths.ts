import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  lutimesSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmdirSync,
  statfsSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { errorCode, ioFault } from './io-fault.ts'
import { syncPath } from './replace-file.ts'

/**
 * The path with every link resolved, as the kernel follows them; null when it leads nowhere. Node's own way
 * (`realpathSync` without `.native`) takes a link's `..` by its text, and never ends on some links that lead
 * through themselves. Faults: sys/io.
 */
export function realPath(path: string): string | null {
  try {
    return realpathSync.native(path)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw ioFault('Resolving', path, error)
  }
}

/**
 * Renames a file or folder on the same file system; durable when it returns. What lies at `to` is
 * replaced if it is a file or an empty folder. The content is not synced. Faults: sys/io.
 */
export function movePath(from: string, to: string): void {
  try {
    renameSync(from, to)
    syncPath(dirname(to))
    if (dirname(from) !== dirname(to)) syncPath(dirname(from))
  } catch (error) {
    throw ioFault('Moving', from, error)
  }
}

/**
 * Copies a file that must not exist yet, with its modification time (to the millisecond, never later):
 * readers that compare times, as git does with an index, see the same. Not durable. Faults: sys/io.
 */
export function copyWithTime(from: string, to: string): void {
  try {
    const seconds = Math.floor(statSync(from).mtimeMs) / 1000
    copyFileSync(from, to, constants.COPYFILE_EXCL)
    utimesSync(to, seconds, seconds)
  } catch (error) {
    throw ioFault('Copying', from, error)
  }
}

/** Dates what lies at a path, a link itself; milliseconds since the epoch. Faults: sys/io. */
export function setModified(path: string, ms: number): void {
  try {
    lutimesSync(path, ms / 1000, ms / 1000)
  } catch (error) {
    throw ioFault('Dating', path, error)
  }
}

/** Removes a folder that is empty; one that is not, or is absent, stays as it is. Faults: sys/io. */
export function removeEmptyFolder(path: string): void {
  try {
    rmdirSync(path)
  } catch (error) {
    if (['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) return
    throw ioFault('Removing', path, error)
  }
}

/** A fresh folder of our own (0700) where the system has temporary files. */
export function makeTemporaryFolder(prefix: string): string {
  return mkdtempSync(join(tmpdir(), prefix))
}

/** Whether this process may read or change what the path leads to; a read-only file system counts. */
export function isAllowed(path: string, action: 'read' | 'write'): boolean {
  try {
    accessSync(path, action === 'read' ? constants.R_OK : constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Changes the permission bits of a file or folder; a link is followed, so inspect first. Faults: sys/io. */
export function changeMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode)
  } catch (error) {
    throw ioFault('Changing the permissions of', path, error)
  }
}

/** The file system that holds a path. */
export type FileSystem = Readonly<{
  /** statfs(2) `f_type`; its numbers have a meaning on Linux only. */
  magic: number
  freeBytes: number
  /** null = it makes them as needed. */
  freeInodes: number | null
}>

/** Faults: sys/io. */
export function fileSystemOf(path: string): FileSystem {
  try {
    const { type, bavail, bsize, files, ffree } = statfsSync(path)
    return { magic: type, freeBytes: bavail * bsize, freeInodes: files > 0 ? ffree : null }
  } catch (error) {
    throw ioFault('Looking at', path, error)
  }
}
