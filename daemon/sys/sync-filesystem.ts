import { closeSync, constants as fileFlags, openSync } from 'node:fs'
import { ioFault } from './io-fault.ts'
import { call, has, systemFault } from './native.ts'

/** Writes the whole file system that holds `path` to its device, and waits for it. Faults: sys/io. */
export function syncFilesystemOf(path: string): void {
  if (!has('syncfs')) {
    call('sync')
    return
  }
  const fd = openForSync(path)
  try {
    const { result, errno } = call('syncfs', fd)
    if (result !== 0) throw systemFault('Syncing', path, errno)
  } finally {
    closeSync(fd)
  }
}

function openForSync(path: string): number {
  try {
    return openSync(path, fileFlags.O_RDONLY | fileFlags.O_NONBLOCK)
  } catch (error) {
    throw ioFault('Syncing', path, error)
  }
}
