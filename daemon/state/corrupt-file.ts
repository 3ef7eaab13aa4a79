import { basename, dirname, join } from 'node:path'
import { describeThrown, type Fault, fault } from '../core/fault.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { copyFile, fileStatus, listDirectory, readFileBounded } from '../sys/files.ts'

/**
 * The fault of a corrupt file; it names the copy of its bytes.
 * @param archive makes or finds that copy; null = there is none
 */
export function corruptFault(path: string, reason: string, archive: () => string | null): Fault {
  try {
    const copy = archive()
    const kept = copy === null ? 'Nothing was changed.' : `Its bytes were kept as ${copy}.`
    return fault('state/corrupt', { path, reason, kept, archive: copy })
  } catch (error) {
    // The corruption is what the reader has to know; that the copy failed comes second.
    const kept = `Its bytes could not be copied: ${describeThrown(error)}`
    return fault('state/corrupt', { path, reason, kept, archive: null }, error)
  }
}

/** The copy of exactly these bytes that was made earlier, or null. */
export function findArchivedBytes(path: string, maxBytes: number): string | null {
  const folder = dirname(path)
  const prefix = prefixOf(path)
  const copies = listDirectory(folder).filter((name) => name.startsWith(prefix))
  return (
    copies.map((name) => join(folder, name)).find((copy) => isCopy(copy, path, maxBytes)) ?? null
  )
}

/**
 * Copies a corrupt file to `<file>.corrupt-<timestamp>` beside it, once for the same bytes. The file
 * itself stays as it is. For the holder of the state lock only. Faults: sys/io.
 * @param now milliseconds since the epoch
 */
export function archiveCorruptBytes(path: string, maxBytes: number, now: number): string {
  const archived = findArchivedBytes(path, maxBytes)
  if (archived !== null) return archived
  let at = now
  while (fileStatus(copyName(path, at)) !== null) at += 1
  const copy = copyName(path, at)
  copyFile(path, copy)
  return copy
}

function copyName(path: string, at: number): string {
  return join(dirname(path), `${prefixOf(path)}${toTimestamp(at).replaceAll(/[-:.]/g, '')}`)
}

function prefixOf(path: string): string {
  return `${basename(path)}.corrupt-`
}

function isCopy(copy: string, path: string, maxBytes: number): boolean {
  const [a, b] = [fileStatus(copy), fileStatus(path)]
  if (a?.kind !== 'file' || b?.kind !== 'file' || a.size !== b.size) return false
  // What is too large to be read is not read to be compared either.
  if (a.size > maxBytes) return true
  const [copied, original] = [readFileBounded(copy, maxBytes), readFileBounded(path, maxBytes)]
  return copied !== null && original !== null && copied.equals(original)
}
