import { type Dirent, lstatSync, readdirSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { errorCode, ioFault } from './io-fault.ts'

/** What lies at a path of a worker's tree; no link is followed at its end. */
export type TreeEntry = Readonly<{
  kind: 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device'
  /** Bytes a reader would get, holes included. */
  size: number
}>

/**
 * Looks at a path below a folder.
 * @param path its bytes, for names need not be UTF-8
 * @returns null when nothing is there
 * Faults: sys/io.
 */
export function treeEntry(root: string, path: Uint8Array): TreeEntry | null {
  const full = Buffer.concat([Buffer.from(`${root}/`), path])
  try {
    const status = lstatSync(full)
    return { kind: kindOf(status), size: status.size }
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw ioFault('Looking at', full.toString(), error)
  }
}

/** Something below a folder; `path` has one character per byte (latin1), for names need not be UTF-8. */
export type EntryBelow = Readonly<{
  path: string
  kind: 'file' | 'directory' | 'symlink' | 'other'
}>

/**
 * Everything below a folder, each folder before what is in it; no link is followed. What may not be
 * listed, or lies too deep to be named, is left out. About 2 µs per entry.
 * @param isLeftOut is asked for each entry; one that is left out is not entered either
 */
export function* entriesBelow(
  root: string,
  isLeftOut: (path: string) => boolean,
): Generator<EntryBelow> {
  const waiting = ['']
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const entry of listBytes(root, folder)) {
      const path = `${folder}${entry.name}`
      if (isLeftOut(path)) continue
      yield { path, kind: kindOfDirent(entry) }
      if (entry.isDirectory()) waiting.push(`${path}/`)
    }
  }
}

function listBytes(root: string, folder: string): readonly Dirent[] {
  const full = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(folder, 'latin1')])
  try {
    return readdirSync(full, { withFileTypes: true, encoding: 'latin1' })
  } catch {
    return []
  }
}

function kindOfDirent(entry: Dirent): EntryBelow['kind'] {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'symlink' : 'other'
}

function kindOf(status: Stats): TreeEntry['kind'] {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'directory'
  if (status.isSymbolicLink()) return 'symlink'
  if (status.isFIFO()) return 'fifo'
  return status.isSocket() ? 'socket' : 'device'
}

/** Entries read; a larger tree is represented by as many of them. */
const MAX_ENTRIES = 100_000

/**
 * A value that differs whenever something below `root` was written, made, removed or renamed since the
 * last one: the newest change time and the number of entries. Change times cannot be set by programs.
 * Links are not followed; what cannot be read is left out. About 5 µs per entry.
 */
export function treeFingerprint(root: string): string {
  const waiting = [root]
  let newestMs = changeTime(root)
  let entries = 1
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const entry of entriesOf(folder)) {
      if (entries >= MAX_ENTRIES) return `${newestMs} ${entries}`
      entries += 1
      const path = join(folder, entry.name)
      newestMs = Math.max(newestMs, changeTime(path))
      if (entry.isDirectory()) waiting.push(path)
    }
  }
  return `${newestMs} ${entries}`
}

function changeTime(path: string): number {
  // The tree is being worked on: what vanishes meanwhile shows in the count and its folder's time.
  return lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    // Removed meanwhile, or closed to us; its own times still count.
    return []
  }
}
