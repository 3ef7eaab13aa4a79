import { randomUUID } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { describeThrown, type Fault, fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { type Meta, newMeta } from '../core/meta.ts'
import type { Change, Clock, Store } from '../core/ports.ts'
import { EMPTY_QUEUE, type QueueState } from '../core/queue-state.ts'
import { toTimestamp } from '../core/timestamp.ts'
import {
  copyFile,
  ensureDirectory,
  fileStatus,
  listDirectory,
  readFileBounded,
  removeFile,
  writeFileAtomic,
} from '../sys/files.ts'
import { tryLock, waitForLock } from '../sys/kernel-lock.ts'
import { layoutOf, type StateLayout } from './layout.ts'
import type { StoredFields } from './schema-parts.ts'
import {
  META_FORMAT,
  QUEUE_FORMAT,
  renderStoredFile,
  type StoredContent,
  type StoredFormat,
  storedFileReader,
} from './stored-file.ts'

// The JSON backend (design §5). A change reads, decides and replaces the file under state.lock, without
// an await in between, so that nothing written by another process is lost. Reads take no lock: the file
// is only ever replaced as a whole.

type Dependencies = Readonly<{
  clock: Clock
  /**
   * Whether a read that meets corrupt bytes keeps a copy of them. `status` and the like leave
   * everything as it is; a change always keeps one.
   */
  archiveCorrupt?: boolean
}>

/** One stored file, and what stands for it while there is none. */
type Document<Content, File extends StoredFields & Content> = Readonly<{
  path: string
  format: StoredFormat<Content, File>
  reading: () => StoredContent<Content>
  absent: Content
  /** What the first change begins with, when that has to be stored whatever the change is. */
  begin: (() => Content) | null
}>

/**
 * Opens the store in a state directory; nothing is read or created yet.
 * While there is no `state_meta.json`, `readMeta().installationId` is empty; the first change makes it.
 */
export function openJsonStore(dependencies: Dependencies, stateDir: string): Store {
  const layout = layoutOf(stateDir)
  const queue: Document<QueueState, Parameters<typeof QUEUE_FORMAT.contentOf>[0]> = {
    path: layout.queue,
    format: QUEUE_FORMAT,
    reading: storedFileReader(layout.queue, QUEUE_FORMAT),
    absent: EMPTY_QUEUE,
    begin: null,
  }
  const meta: Document<Meta, Parameters<typeof META_FORMAT.contentOf>[0]> = {
    path: layout.meta,
    format: META_FORMAT,
    reading: storedFileReader(layout.meta, META_FORMAT),
    absent: newMeta(''),
    begin: () => newMeta(randomUUID()),
  }
  return {
    readQueue: () => read(dependencies, layout, queue),
    changeQueue: (change) => changeDocument(dependencies, layout, queue, change),
    readMeta: () => read(dependencies, layout, meta),
    changeMeta: (change) => changeDocument(dependencies, layout, meta, change),
    exists: () =>
      [layout.queue, layout.meta, layout.database].some((path) => fileStatus(path) !== null),
  }
}

function read<Content, File extends StoredFields & Content>(
  { clock, archiveCorrupt }: Dependencies,
  layout: StateLayout,
  { path, format, absent, ...document }: Document<Content, File>,
): Content {
  const reading = document.reading()
  if (reading.kind === 'read') return reading.content
  if (reading.kind === 'absent') {
    refuseDatabase(layout)
    return absent
  }
  // Without the lock two processes would keep the same bytes twice; whoever has it now keeps them.
  const lock = archiveCorrupt === true ? tryLock(layout.stateLock) : null
  try {
    throw corruptFault(path, reading.reason, () =>
      lock === null
        ? findArchivedBytes(path, format.maxBytes)
        : archiveCorruptBytes(path, format.maxBytes, clock.now()),
    )
  } finally {
    lock?.close()
  }
}

async function changeDocument<Content extends object, File extends StoredFields & Content, T>(
  { clock }: Dependencies,
  layout: StateLayout,
  { path, format, absent, begin, ...document }: Document<Content, File>,
  change: (content: Content) => Change<Content, T>,
): Promise<T> {
  ensureDirectory(layout.stateDir)
  const lock = await waitForLock(clock, layout.stateLock, LIMITS.stateLockMs)
  try {
    const reading = document.reading()
    if (reading.kind === 'corrupt') {
      throw corruptFault(path, reading.reason, () =>
        archiveCorruptBytes(path, format.maxBytes, clock.now()),
      )
    }
    if (reading.kind === 'absent') refuseDatabase(layout)
    const before = reading.kind === 'read' ? reading.content : (begin?.() ?? absent)
    const { state, value } = change(before)
    const mustStart = reading.kind === 'absent' && begin !== null
    if (state !== before || mustStart) {
      const text = renderStoredFile(path, format, state)
      removeTemporaryFiles(layout.stateDir, path)
      writeFileAtomic(path, text)
    }
    return value
  } finally {
    lock.close()
  }
}

/**
 * An old database without our queue beside it holds somebody's state, which must not be taken for
 * none (design §5). Its schema cannot be read without SQLite, and no schema would help here.
 */
function refuseDatabase(layout: StateLayout): void {
  if (fileStatus(layout.queue) !== null) return
  if ((fileStatus(layout.database)?.size ?? 0) === 0) return
  throw fault('state/stale-schema', {
    path: layout.database,
    found: 'unknown',
    known: 'JSON files',
  })
}

function corruptFault(path: string, reason: string, keep: () => string | null): Fault {
  try {
    const archive = keep()
    const kept = archive === null ? 'Nothing was changed.' : `Its bytes were kept as ${archive}.`
    return fault('state/corrupt', { path, reason, kept, archive })
  } catch (error) {
    // The corruption is what the reader has to know; that the copy failed comes second.
    const kept = `Its bytes could not be copied: ${describeThrown(error)}`
    return fault('state/corrupt', { path, reason, kept, archive: null }, error)
  }
}

/** Removes what writers that were killed left; no other writer is there while the lock is held. */
function removeTemporaryFiles(stateDir: string, path: string): void {
  const prefix = `.${basename(path)}.`
  for (const name of listDirectory(stateDir)) {
    if (name.startsWith(prefix) && name.endsWith('.tmp')) removeFile(join(stateDir, name))
  }
}

/** The copy of exactly these bytes that was made earlier, or null. */
function findArchivedBytes(path: string, maxBytes: number): string | null {
  const folder = dirname(path)
  const prefix = prefixOf(path)
  const copies = listDirectory(folder).filter((name) => name.startsWith(prefix))
  return (
    copies.map((name) => join(folder, name)).find((copy) => isCopy(copy, path, maxBytes)) ?? null
  )
}

/**
 * Copies a corrupt file to `<file>.corrupt-<timestamp>` beside it, once for the same bytes. The file
 * itself stays as it is (design §5). For the holder of the state lock only. Faults: sys/io.
 * @param now milliseconds since the epoch
 */
function archiveCorruptBytes(path: string, maxBytes: number, now: number): string {
  const kept = findArchivedBytes(path, maxBytes)
  if (kept !== null) return kept
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
