import { isUtf8 } from 'node:buffer'
import { fault } from '../core/fault.ts'
import { formatRepository, issueId, parseRepositoryName } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Meta } from '../core/meta.ts'
import type { QueueState } from '../core/queue-state.ts'
import {
  type Checked,
  describeExpectation,
  formatLocation,
  locationOf,
} from '../core/schema-error.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import type { JournalFile } from './journal-schema.ts'
import { STATE_VERSION, type StoredFields } from './schema-parts.ts'
import type { MetaFile, QueueFile } from './store-schema.ts'
import { validateJournalFile, validateMetaFile, validateQueueFile } from './validate-stored.ts'

/** What a stored file amounts to. A corrupt one was not touched. */
export type StoredContent<Content> =
  | Readonly<{ kind: 'absent' }>
  | Readonly<{ kind: 'read'; content: Content }>
  | Readonly<{ kind: 'corrupt'; reason: string }>

/**
 * Reads and checks a stored file; creates and changes nothing. A file of another version is told apart
 * from a corrupt one, because its bytes are good and only this program is wrong for them (design §5).
 * Faults: state/format-of-original, state/format-newer, sys/io.
 */
export function readStoredFile<Content, File extends StoredFields & Content>(
  path: string,
  format: StoredFormat<Content, File>,
): StoredContent<Content> {
  return storedFileReader(path, format)()
}

/**
 * `readStoredFile` for a file that is read again and again: while its bytes stay the same, they are not
 * parsed and checked again, which for ten thousand issues takes thirty times as long as reading them.
 * Whoever reads shares one content and must not change it.
 */
export function storedFileReader<Content, File extends StoredFields & Content>(
  path: string,
  format: StoredFormat<Content, File>,
): () => StoredContent<Content> {
  let last: Readonly<{ bytes: Buffer; reading: StoredContent<Content> }> | null = null
  return () => {
    const size = fileStatus(path)?.size ?? 0
    if (size > format.maxBytes) return corrupt(`it is larger than ${format.maxBytes} bytes`)
    const bytes = readFileBounded(path, format.maxBytes)
    if (bytes === null) return { kind: 'absent' }
    if (last?.bytes.equals(bytes)) return last.reading
    const reading = interpret(path, bytes, format)
    last = { bytes, reading }
    return reading
  }
}

function interpret<Content, File extends StoredFields & Content>(
  path: string,
  bytes: Buffer,
  format: StoredFormat<Content, File>,
): StoredContent<Content> {
  if (bytes.length === 0) return corrupt('it is empty')
  if (!isUtf8(bytes)) return corrupt('it is not UTF-8')
  const data = parseJson(bytes.toString('utf8'))
  if (data === undefined) return corrupt('it is not valid JSON')
  refuseOtherVersion(path, data, format.name)
  return check(data, format)
}

/**
 * The text of a stored file. A content that could not be read back is refused before it replaces a good
 * one. Faults: internal/unexpected, sys/io when it is too large.
 */
export function renderStoredFile<Content extends object, File extends StoredFields & Content>(
  path: string,
  format: StoredFormat<Content, File>,
  content: Content,
): string {
  const file = { format: format.name, version: STATE_VERSION, ...content }
  const checked = check(file, format)
  if (checked.kind === 'corrupt') {
    throw fault('internal/unexpected', { reason: `${path} would be unreadable: ${checked.reason}` })
  }
  const text = `${JSON.stringify(file)}\n`
  if (Buffer.byteLength(text) <= format.maxBytes) return text
  const reason = `it would be larger than ${format.maxBytes} bytes`
  throw fault('sys/io', { operation: 'Writing', path, reason })
}

function check<Content, File extends StoredFields & Content>(
  data: unknown,
  format: StoredFormat<Content, File>,
): Exclude<StoredContent<Content>, { kind: 'absent' }> {
  const checked = format.validate(data)
  if (!checked.ok) return corrupt(describe(checked))
  const content = format.contentOf(checked.value)
  const contradiction = format.contradictionOf(content)
  return contradiction === null ? { kind: 'read', content } : corrupt(contradiction)
}

/** The original writes `{"version": 1, …}`, and before that `{"entries": […]}`, without a format name. */
function refuseOtherVersion(path: string, data: unknown, name: string): void {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return
  const { format, version, entries }: Partial<Record<string, unknown>> = { ...data }
  const isOld = version === undefined && Array.isArray(entries)
  if (format === undefined && (isOld || Number.isInteger(version))) {
    throw fault('state/format-of-original', { path, found: isOld ? 0 : Number(version) })
  }
  const isNewer =
    typeof version === 'number' && Number.isInteger(version) && version > STATE_VERSION
  if (format === name && isNewer) {
    throw fault('state/format-newer', { path, found: version, known: STATE_VERSION })
  }
}

function describe(checked: Extract<Checked<unknown>, { ok: false }>): string {
  const [error] = checked.errors
  if (error === undefined) return 'it does not follow its schema'
  const where = formatLocation(locationOf(error))
  return `${where === '' ? 'the file' : where} should be ${describeExpectation(error)}`
}

/** undefined = not JSON; no JSON text stands for that. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function corrupt(reason: string): Readonly<{ kind: 'corrupt'; reason: string }> {
  return { kind: 'corrupt', reason }
}

// The three kinds of stored files, and what their schemas cannot say.

/** How a content is stored: the file is `{format, version, …content}`. */
export type StoredFormat<Content, File extends StoredFields & Content> = Readonly<{
  name: string
  maxBytes: number
  validate(data: unknown): Checked<File>
  /** The content without what belongs to the file. */
  contentOf(file: File): Content
  /** What is wrong with a content although it follows the schema, or null. */
  contradictionOf(content: Content): string | null
}>

export const QUEUE_FORMAT: StoredFormat<QueueState, QueueFile> = {
  name: 'caduceus-queue',
  maxBytes: LIMITS.queueBytes,
  validate: validateQueueFile,
  contentOf: ({ entries, circuits }) => ({ entries, circuits }),
  contradictionOf: ({ entries }) => {
    // Thousands of entries name few repositories; each name is looked at once.
    const known = new Set<string>()
    for (const [id, { key }] of Object.entries(entries)) {
      if (issueId(key) !== id) return `the entry "${id}" belongs to ${issueId(key)}`
      const repository = id.slice(0, id.lastIndexOf('#'))
      if (known.has(repository)) continue
      if (parseRepositoryName(repository) === null) return `"${id}" does not name an issue`
      known.add(repository)
    }
    return null
  },
}

export const META_FORMAT: StoredFormat<Meta, MetaFile> = {
  name: 'caduceus-meta',
  maxBytes: LIMITS.metaBytes,
  validate: validateMetaFile,
  contentOf: ({ format: _format, version: _version, ...meta }) => meta,
  contradictionOf: () => null,
}

export const JOURNAL_FORMAT: StoredFormat<Journal, JournalFile> = {
  name: 'caduceus-run',
  maxBytes: LIMITS.journalBytes,
  validate: validateJournalFile,
  contentOf: ({ format: _format, version: _version, ...journal }) => journal,
  contradictionOf: ({ key }) =>
    parseRepositoryName(formatRepository(key)) === null
      ? `"${issueId(key)}" does not name an issue`
      : null,
}
