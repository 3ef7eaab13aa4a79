// Files: every read is bounded, every replacement atomic and durable, no link is followed at the end
// of a path that others may have written.

import {
  accessSync,
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { errorCode, ioFault } from './io-fault.ts'
import { openUpFolders } from './open-up-folders.ts'
import { replaceFile, syncPath } from './replace-file.ts'

/** What lies at a path, not following a link there. Times in milliseconds since the epoch. */
export type FileStatus = Readonly<{
  kind: 'file' | 'directory' | 'symlink' | 'other'
  size: number
  mtimeMs: number
  ino: number
  /** Permission bits only. */
  mode: number
  uid: number
}>

const NOT_REGULAR = 'not a regular file'
const SYMBOLIC_LINK = 'a symbolic link'
const HARD_LINK = 'a hard link'
const READ_FLAGS =
  constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const CREATE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
const APPEND_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

/**
 * The whole content of a regular file of at most `maxBytes`; null when there is none.
 * Faults: sys/io, with the reason 'too large', 'not a regular file' or 'a symbolic link' where it is
 * one of these; with `refuseHardLinks` also 'a hard link', for a file that has another name elsewhere.
 */
export function readFileBounded(
  path: string,
  maxBytes: number,
  { refuseHardLinks = false } = {},
): Buffer | null {
  const fd = openToRead(path)
  if (fd === null) return null
  try {
    const status = fstatSync(fd)
    if (!status.isFile()) throw ioFault('Reading', path, NOT_REGULAR)
    if (refuseHardLinks && status.nlink > 1) throw ioFault('Reading', path, HARD_LINK)
    if (status.size > maxBytes) throw ioFault('Reading', path, 'too large')
    return readAll(fd, path, status.size, maxBytes)
  } finally {
    closeSync(fd)
  }
}

/**
 * The last bytes of a regular file, at most `maxBytes`; null when there is none. Faults: as
 * `readFileBounded`, but never 'too large'.
 */
export function readFileTail(path: string, maxBytes: number): Buffer | null {
  const fd = openToRead(path)
  if (fd === null) return null
  try {
    const status = fstatSync(fd)
    if (!status.isFile()) throw ioFault('Reading', path, NOT_REGULAR)
    const buffer = Buffer.alloc(Math.min(status.size, maxBytes))
    const from = status.size - buffer.length
    const count = attempt('Reading', path, () => readSync(fd, buffer, 0, buffer.length, from))
    return buffer.subarray(0, count)
  } finally {
    closeSync(fd)
  }
}

/** Writes a file that must not be there yet (0600), durably. Faults: sys/io, also when it is there. */
export function writeNewFile(path: string, text: string): void {
  const fd = attempt('Creating', path, () => openSync(path, CREATE_FLAGS, 0o600))
  try {
    attempt('Writing', path, () => {
      writeAll(fd, Buffer.from(text))
      fsyncSync(fd)
    })
  } finally {
    closeSync(fd)
  }
}

/**
 * Replaces a file in one step, durably: after a crash the path holds the whole old content or the
 * whole new one. The permissions become exactly `mode`. A temporary sibling is removed on failure.
 * Faults: sys/io, also when the path is a symbolic link or not a regular file.
 */
export function writeFileAtomic(path: string, data: string | Uint8Array, mode = 0o600): void {
  refuseIrregular(path)
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  replaceFile(path, (temporary) => {
    const fd = openSync(temporary, CREATE_FLAGS, mode)
    try {
      writeAll(fd, bytes)
      fchmodSync(fd, mode)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  })
}

/** Copies a file's bytes and permissions, replacing `to` in one durable step. Faults: sys/io. */
export function copyFile(from: string, to: string): void {
  refuseIrregular(to)
  replaceFile(to, (temporary) => {
    copyFileSync(from, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    syncPath(temporary)
  })
}

/**
 * Makes a folder and the ones above it, durably; nothing happens when it is there.
 * Faults: sys/io, also when the path is a symbolic link or something else.
 */
export function ensureDirectory(path: string, mode = 0o700): void {
  attempt('Creating', path, () => {
    const last = resolve(path)
    const first = mkdirSync(last, { recursive: true, mode })
    if (first === undefined) return
    for (let made = last; made.length >= first.length; made = dirname(made)) syncPath(dirname(made))
  })
  const kind = fileStatus(path)?.kind
  if (kind === 'symlink') throw ioFault('Creating', path, SYMBOLIC_LINK)
  if (kind !== 'directory') throw ioFault('Creating', path, 'not a folder')
}

/** Names in a folder, sorted; none when it is absent. Faults: sys/io. */
export function listDirectory(path: string): string[] {
  return attempt('Listing', path, () => readdirSync(path).sort(), 'ENOENT') ?? []
}

/** What lies at a path, not following a link there; null when nothing does. Faults: sys/io. */
export function fileStatus(path: string): FileStatus | null {
  const status = attempt('Looking at', path, () => lstatSync(path), 'ENOENT', 'ENOTDIR')
  if (status === null) return null
  const { size, mtimeMs, ino, uid } = status
  return { kind: kindOf(status), size, mtimeMs, ino, mode: status.mode & 0o7777, uid }
}

/** Appends one line with a single write, so that lines of several processes stay whole. Faults: sys/io. */
export function appendLine(path: string, line: string): void {
  const fd = openToAppend(path)
  try {
    attempt('Writing', path, () => writeSync(fd, `${line}\n`))
  } finally {
    closeSync(fd)
  }
}

/** A descriptor (0600, no link followed) for a child's output; close it with `closeDescriptor`. */
export function openToAppend(path: string): number {
  return attempt('Opening', path, () => openSync(path, APPEND_FLAGS, 0o600))
}

/** Closes a descriptor from `openToAppend`. */
export function closeDescriptor(fd: number): void {
  closeSync(fd)
}

/** Moves a file to another name in the same folder, replacing what has it. Faults: sys/io. */
export function renameFile(from: string, to: string): void {
  attempt('Renaming', from, () => renameSync(from, to))
}

/** Removes a file or link; nothing happens when it is absent. Faults: sys/io. */
export function removeFile(path: string): void {
  attempt('Removing', path, () => unlinkSync(path), 'ENOENT')
}

/**
 * Removes a file, a link itself, or a whole folder; nothing happens when it is absent. Unwritable
 * folders and nests too deep to name, as workers make them, are opened up first. Links are
 * removed, never followed. Faults: sys/io.
 */
export async function removePath(path: string): Promise<void> {
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true })
  try {
    // Opening up only after a failure: reading every folder costs as much as removing it.
    await remove().catch(async () => {
      await openUpFolders(path)
      await remove()
    })
  } catch (error) {
    throw ioFault('Removing', path, error)
  }
}

/** Whether the path leads to a folder; links are followed. */
export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Whether the path leads to a regular file this process may execute; links are followed. */
export function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function openToRead(path: string): number | null {
  try {
    return openSync(path, READ_FLAGS)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    if (code === 'ELOOP') throw ioFault('Reading', path, SYMBOLIC_LINK)
    if (code === 'ENXIO') throw ioFault('Reading', path, NOT_REGULAR)
    throw ioFault('Reading', path, error)
  }
}

/** Reads to the end, which may lie beyond the reported size: files grow, and those of proc(5) report 0. */
function readAll(fd: number, path: string, reportedSize: number, maxBytes: number): Buffer {
  let buffer = Buffer.allocUnsafe(Math.min(Math.max(reportedSize, 4096), maxBytes) + 1)
  let length = 0
  for (;;) {
    const count = attempt('Reading', path, () =>
      readSync(fd, buffer, length, buffer.length - length, null),
    )
    if (count === 0) return buffer.subarray(0, length)
    length += count
    if (length > maxBytes) throw ioFault('Reading', path, 'too large')
    if (length < buffer.length) continue
    const larger = Buffer.allocUnsafe(Math.min(buffer.length * 2, maxBytes + 1))
    buffer.copy(larger, 0, 0, length)
    buffer = larger
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let offset = 0; offset < bytes.length; ) {
    offset += writeSync(fd, bytes, offset, bytes.length - offset)
  }
}

function refuseIrregular(path: string): void {
  const kind = fileStatus(path)?.kind
  if (kind === 'symlink') throw ioFault('Writing', path, SYMBOLIC_LINK)
  if (kind !== undefined && kind !== 'file') throw ioFault('Writing', path, NOT_REGULAR)
}

function kindOf(status: Stats): FileStatus['kind'] {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'directory'
  return status.isSymbolicLink() ? 'symlink' : 'other'
}

/** The value of an operation; null for the error codes that mean absence; else `sys/io`. */
function attempt<T>(operation: string, path: string, run: () => T): T
function attempt<T>(operation: string, path: string, run: () => T, ...absent: string[]): T | null
function attempt<T>(operation: string, path: string, run: () => T, ...absent: string[]): T | null {
  try {
    return run()
  } catch (error) {
    if (absent.includes(errorCode(error) ?? '')) return null
    throw ioFault(operation, path, error)
  }
}
