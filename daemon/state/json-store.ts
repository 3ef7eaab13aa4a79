import { randomUUID } from 'node:crypto'
import { basename, join } from 'node:path'
import { describeThrown, type Fault, fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { type Meta, newMeta } from '../core/meta.ts'
import type { Change, Clock, Store } from '../core/ports.ts'
import { EMPTY_QUEUE, type QueueState } from '../core/queue.ts'
import {
  ensureDirectory,
  fileStatus,
  listDirectory,
  removeFile,
  writeFileAtomic,
} from '../sys/files.ts'
import { tryLock, waitForLock } from '../sys/kernel-lock.ts'
import { META_FORMAT, QUEUE_FORMAT, type StoredFormat } from './formats.ts'
import { findKeptBytes, keepCorruptBytes } from './keep-corrupt-bytes.ts'
import { layoutOf, type StateLayout } from './layout.ts'
import type { StoredFields } from './schema-parts.ts'
import { readStoredFile, renderStoredFile } from './stored-file.ts'

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
    absent: EMPTY_QUEUE,
    begin: null,
  }
  const meta: Document<Meta, Parameters<typeof META_FORMAT.contentOf>[0]> = {
    path: layout.meta,
    format: META_FORMAT,
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
  { path, format, absent }: Document<Content, File>,
): Content {
  const reading = readStoredFile(path, format)
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
        ? findKeptBytes(path, format.maxBytes)
        : keepCorruptBytes(path, format.maxBytes, clock.now()),
    )
  } finally {
    lock?.close()
  }
}

async function changeDocument<Content extends object, File extends StoredFields & Content, T>(
  { clock }: Dependencies,
  layout: StateLayout,
  { path, format, absent, begin }: Document<Content, File>,
  change: (content: Content) => Change<Content, T>,
): Promise<T> {
  ensureDirectory(layout.stateDir)
  const lock = await waitForLock(clock, layout.stateLock, LIMITS.stateLockMs)
  try {
    const reading = readStoredFile(path, format)
    if (reading.kind === 'corrupt') {
      throw corruptFault(path, reading.reason, () =>
        keepCorruptBytes(path, format.maxBytes, clock.now()),
      )
    }
    if (reading.kind === 'absent') refuseDatabase(layout)
    const before = reading.kind === 'read' ? reading.content : (begin?.() ?? absent)
    const { state, value } = change(before)
    const mustBegin = reading.kind === 'absent' && begin !== null
    if (state !== before || mustBegin) {
      const text = renderStoredFile(path, format, state)
      removeLeftovers(layout.stateDir, path)
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
function removeLeftovers(stateDir: string, path: string): void {
  const prefix = `.${basename(path)}.`
  for (const name of listDirectory(stateDir)) {
    if (name.startsWith(prefix) && name.endsWith('.tmp')) removeFile(join(stateDir, name))
  }
}
