import { randomUUID } from 'node:crypto'
import { basename, join } from 'node:path'
import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { type Meta, newMeta } from '../core/meta.ts'
import type { Change, Clock, Store } from '../core/ports.ts'
import { EMPTY_QUEUE, type QueueState } from '../core/queue-state.ts'
import {
  ensureDirectory,
  fileStatus,
  listDirectory,
  removeFile,
  writeFileAtomic,
} from '../sys/files.ts'
import { tryLock, waitForLock } from '../sys/kernel-lock.ts'
import { archiveCorruptBytes, corruptFault, findArchivedBytes } from './corrupt-file.ts'
import { layoutOf, type StateLayout } from './layout.ts'
import type { StoredFields } from './schema-parts.ts'
import { renderStoredFile, type StoredContent, storedFileReader } from './stored-file.ts'
import { META_FORMAT, QUEUE_FORMAT, type StoredFormat } from './stored-formats.ts'

// The JSON backend. A change reads, decides and replaces the file under state.lock, without an await in between, so
// that nothing written by another process is lost (I9). Reads take no lock: the file is only ever replaced as a whole.

type Dependencies = Readonly<{
  clock: Clock
  /**
   * Whether a read that finds corrupt bytes archives a copy of them. `status` and the like change nothing; a change
   * always archives one.
   */
  archiveCorrupt?: boolean
}>

/** One stored file, and what stands for it while there is none. */
type Document<Content, File extends StoredFields & Content> = Readonly<{
  path: string
  format: StoredFormat<Content, File>
  reading: () => StoredContent<Content>
  absent: Content
  /** What the first change starts from, when that must be stored even if the change changes nothing. */
  initial: (() => Content) | null
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
    initial: null,
  }
  const meta: Document<Meta, Parameters<typeof META_FORMAT.contentOf>[0]> = {
    path: layout.meta,
    format: META_FORMAT,
    reading: storedFileReader(layout.meta, META_FORMAT),
    absent: newMeta(''),
    initial: () => newMeta(randomUUID()),
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
  // Without the lock two processes would archive the same bytes twice; its present holder archives them.
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
  { path, format, absent, initial, ...document }: Document<Content, File>,
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
    const before = reading.kind === 'read' ? reading.content : (initial?.() ?? absent)
    const { state, value } = change(before)
    const mustStart = reading.kind === 'absent' && initial !== null
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
 * An old database without our queue beside it holds a state, which must not be taken for none. Its schema cannot be
 * read without SQLite, and no schema would help here.
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

/** Removes the garbage of writers that were killed; no other writer exists while the lock is held. */
function removeTemporaryFiles(stateDir: string, path: string): void {
  const prefix = `.${basename(path)}.`
  for (const name of listDirectory(stateDir)) {
    if (name.startsWith(prefix) && name.endsWith('.tmp')) removeFile(join(stateDir, name))
  }
}
