import { type Document, Lexer, LineCounter, Parser, parseDocument } from 'yaml'
import { describeThrown, fault, isFault, reasonOf } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { FileStatus } from '../sys/files.ts'

/** What loading a configuration asks of the file system (daemon/sys). */
export type ConfigFiles = Readonly<{
  readFileBounded(path: string, maxBytes: number): Uint8Array | null
  fileStatus(path: string): FileStatus | null
  /** Links resolved, because people link to their configuration; null when nothing is there. */
  realPath(path: string): string | null
}>

/** An anchor may stand for a tree; expanding more than this many aliases of one is an attack. */
const MAX_ALIASES = 100

/**
 * Collections inside each other. The parser recurses over them, and a stack that is used up can end the whole
 * process: V8 takes a regular expression that it cannot compile there for a lack of memory.
 */
const MAX_NESTING = 100

/**
 * A YAML file, parsed but not yet converted; null when there is no file.
 * Faults: config/unreadable, with the line of what is malformed and without any of the text.
 */
export function readYaml(files: ConfigFiles, path: string): Document | null {
  const bytes = readBytes(files, path)
  if (bytes === null) return null
  const text = decode(path, bytes)
  if (isTooDeep(text)) {
    const reason = `it is nested more than ${MAX_NESTING} levels deep`
    throw fault('config/unreadable', { path, reason })
  }
  const lines = new LineCounter()
  const document = attempt(path, () =>
    parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      logLevel: 'error',
      merge: true,
    }),
  )
  const [error] = document.errors
  if (error === undefined) return document
  const { line, col } = lines.linePos(error.pos[0])
  throw fault(
    'config/unreadable',
    { path, reason: `line ${line}, column ${col}: ${describeThrown(error)}` },
    error,
  )
}

/**
 * A node of the document as plain values.
 * Faults: config/unreadable, when aliases would expand without measure.
 */
export function toPlainValue(path: string, document: Document, key: string | null): unknown {
  return attempt(path, () => {
    const options = { maxAliasCount: MAX_ALIASES }
    const node: unknown = key === null ? document.contents : document.get(key, true)
    return isNode(node) ? node.toJS(document, options) : node
  })
}

function readBytes(files: ConfigFiles, path: string): Uint8Array | null {
  try {
    const real = files.realPath(path)
    return real === null ? null : files.readFileBounded(real, LIMITS.configurationBytes)
  } catch (error) {
    throw fault('config/unreadable', { path, reason: reasonOf(error) }, error)
  }
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw fault('config/unreadable', { path, reason: 'it is not UTF-8 text' }, error)
  }
}

/** Asked of the parser's first stage, which does not recurse. */
function isTooDeep(text: string): boolean {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    // The tokens themselves are of no interest; without asking for them the parser does not advance.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > MAX_NESTING) return true
  }
  return false
}

/** The parser throws on what it cannot expand; that is a fault of the file. */
function attempt<T>(path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (isFault(error)) throw error
    throw fault('config/unreadable', { path, reason: describeThrown(error) }, error)
  }
}

type Convertible = { toJS(document: Document, options: { maxAliasCount: number }): unknown }

function isNode(value: unknown): value is Convertible {
  return typeof value === 'object' && value !== null && 'toJS' in value
}
