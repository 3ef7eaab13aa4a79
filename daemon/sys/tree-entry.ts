import { lstatSync, type Stats } from 'node:fs'
import { errorCode, ioFault } from './io-fault.ts'

/** What lies at a path of somebody else's tree; no link is followed at its end. */
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

function kindOf(status: Stats): TreeEntry['kind'] {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'directory'
  if (status.isSymbolicLink()) return 'symlink'
  if (status.isFIFO()) return 'fifo'
  return status.isSocket() ? 'socket' : 'device'
}
