import { join } from 'node:path'
import { fileStatus, listDirectory, removeFile } from '../sys/files.ts'

/** Where git keeps locks and unfinished files, and whether folders below are looked into. */
const PLACES = [
  { folder: '.', deep: false },
  { folder: 'refs', deep: true },
  { folder: 'reftable', deep: false },
  { folder: join('objects', 'info'), deep: false },
  { folder: join('objects', 'pack'), deep: false },
] as const satisfies readonly { folder: string; deep: boolean }[]

/** No branch can end in `.lock` (git-check-ref-format(1)). */
const LEFTOVER = /\.lock$|^\.?tmp[-_]/

/**
 * Removes what a killed git left in a store: lock files, which block every later fetch (P§6), and
 * unfinished packs. Only what is older than the deadline of any git of ours; call it with the
 * repository's lock held.
 * @param olderThan milliseconds since the epoch
 */
export function removeLeftovers(storePath: string, olderThan: number): void {
  for (const { folder, deep } of PLACES) sweep(join(storePath, folder), deep, olderThan)
}

function sweep(folder: string, deep: boolean, olderThan: number): void {
  for (const name of listDirectory(folder)) {
    const path = join(folder, name)
    const status = fileStatus(path)
    if (status?.kind === 'directory' && deep) sweep(path, deep, olderThan)
    if (status?.kind === 'file' && LEFTOVER.test(name) && status.mtimeMs < olderThan) {
      removeFile(path)
    }
  }
}
