import { isUtf8 } from 'node:buffer'
import { fault } from '../core/fault.ts'
import {
  type Checked,
  describeExpectation,
  formatLocation,
  locationOf,
} from '../core/schema-error.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { STATE_VERSION, type StoredFields } from './schema-parts.ts'
import type { StoredFormat } from './stored-formats.ts'

/** What a stored file amounts to. A corrupt one was not touched. */
export type StoredContent<Content> =
  | Readonly<{ kind: 'absent' }>
  | Readonly<{ kind: 'read'; content: Content }>
  | Readonly<{ kind: 'corrupt'; reason: string }>

/**
 * Reads and checks a stored file; creates and changes nothing. A file of another version is a fault and not corrupt,
 * because its bytes are good and only this program is wrong for them.
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
 * All readers share one content, which none of them may change.
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
