import { isDeepStrictEqual } from 'node:util'
import { isMap, parseAllDocuments, parseDocument, visit } from 'yaml'
import { describeThrown } from '../core/fault.ts'

// The first section of ours in the host's configuration. The host's file is the user's: nothing but an
// addition at its end is ever made, and only where the meaning of all the rest is proved to stay.

const SECTION = 'caduceus'
/** As the configuration is read (config/read-yaml.ts). */
const MAX_ALIASES = 100

/** `text` is the whole new content. */
export type SectionPlan =
  | Readonly<{ kind: 'write'; text: string }>
  | Readonly<{ kind: 'present' }>
  | Readonly<{ kind: 'refused'; reason: string }>

/** The first keys of a configuration, with what a newcomer has to know; without a line end. */
export function firstKeys(workerCommand: string | null): readonly string[] {
  return [
    'poll_interval_seconds: 120',
    '# Repositories to watch, each with a clone of yours in ~/projects/OWNER/NAME. For example:',
    '#   watched_repos: [octo/app, octo/library]',
    'watched_repos: []',
    ...(workerCommand === null ? [] : [`worker_command: ${JSON.stringify(workerCommand)}`]),
  ]
}

/** Those keys as a section of a file that others share. */
export function firstSection(): readonly string[] {
  return [
    '# Caduceus. All keys, with what is in force: hermes caduceus config show',
    `${SECTION}:`,
    ...firstKeys(null).map((line) => `  ${line}`),
  ]
}

/**
 * What a file becomes with a section of ours at its end. Every byte that is there stays; when the result
 * would not hold the same values as before plus ours, it is refused.
 * @param current null = there is no file
 * @param lines of the section
 */
export function planSection(current: Uint8Array | null, lines: readonly string[]): SectionPlan {
  if (current === null) return { kind: 'write', text: `${lines.join('\n')}\n` }
  const text = decode(current)
  if (text === null) return refused('it is not UTF-8 text')
  const before = readValues(text)
  if (typeof before === 'string') return refused(before)
  if (Object.hasOwn(before, SECTION)) return { kind: 'present' }
  if (endsInText(text)) return refused('its last text has no line end, and would get one')
  const added = readValues(lines.join('\n'))
  const found = candidates(text, lines).find((candidate) => {
    const after = readValues(candidate)
    return typeof after !== 'string' && isDeepStrictEqual(after, { ...before, ...Object(added) })
  })
  if (found !== undefined) return { kind: 'write', text: found }
  return refused('nothing can be added at its end without a change of what is there')
}

function refused(reason: string): SectionPlan {
  return { kind: 'refused', reason }
}

/** A byte order mark at the start stays. */
function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** With an empty line before it; without one where that would lengthen a text that ends there. */
function candidates(text: string, lines: readonly string[]): readonly string[] {
  const end = /\r\n?|\n/.exec(text)?.[0] ?? '\n'
  const section = `${lines.join(end)}${end}`
  const isBlank = text.replace('\uFEFF', '') === ''
  const whole = isBlank || /[\r\n]$/.test(text) ? text : `${text}${end}`
  return isBlank ? [`${text}${section}`] : [`${whole}${end}${section}`, `${whole}${section}`]
}

/** The values of a file that is one mapping, or empty; else why it is not. */
function readValues(text: string): Readonly<Record<string, unknown>> | string {
  try {
    const documents = parseAllDocuments(text, {
      prettyErrors: false,
      logLevel: 'error',
      merge: true,
    })
    const [document] = documents
    if (documents.length > 1) return 'it holds more than one document'
    if (!Array.isArray(documents) || document === undefined) return {}
    const [error] = document.errors
    if (error !== undefined) return `it is not well-formed: ${describeThrown(error)}`
    if (document.contents === null) return {}
    if (!isMap(document.contents)) return isNull(document.toJS()) ? {} : 'it is not a mapping'
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as Readonly<Record<string, unknown>>
  } catch (error) {
    return `it cannot be read: ${describeThrown(error)}`
  }
}

/** Parsers do not agree on what such a text ends with. */
function endsInText(text: string): boolean {
  let found = false
  if (/[\r\n]$/.test(text)) return found
  visit(parseDocument(text, { logLevel: 'error' }), {
    Scalar: (_, { type, range }) => {
      found ||= type?.startsWith('BLOCK_') === true && (range?.[2] ?? 0) >= text.length
    },
  })
  return found
}

const isNull = (value: unknown): boolean => value === null
