// Which file is the configuration (R§2.1): CADUCEUS_CONFIG alone when it is set, else the section of
// the Hermes configuration, else the standalone file.

import { dirname, join, resolve } from 'node:path'
import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml'
import { describeThrown, fault, isFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { homeDirectory } from '../sys/environment.ts'
import type { FileStatus } from '../sys/files.ts'
import type { ConfigContext } from './resolve-path.ts'
import { CONFIG_KEYS } from './schema.ts'

type Environment = Readonly<Record<string, string>>

/** Where the configuration was found; `section` is null when the whole file is the configuration. */
export type ConfigSource = Readonly<{ path: string; section: 'caduceus' | null }>

export type FoundSource = Readonly<{
  source: ConfigSource
  place: ConfigContext
  document: unknown
}>

const SECTION = 'caduceus'

/** Any of these at the top makes a file one of Hermes (R§2.1). */
export const HERMES_KEYS: readonly string[] = [
  'model',
  'agent',
  'providers',
  'tools',
  'memory',
  'cron',
  'platforms',
  'gateway',
  'secrets',
  'voice',
  'mcp',
  'tts',
]

/** Faults: config/environment, config/unreadable, config/no-section, config/not-found. */
export function findSource(files: ConfigFiles, env: Environment): FoundSource {
  const home = homeDirectory(env)
  const hermesHome = hermesHomeOf(env)
  const at = (found: Omit<FoundSource, 'place'>): FoundSource => ({
    ...found,
    place: { home, hermesHome, configDirectory: dirname(found.source.path) },
  })

  const named = env['CADUCEUS_CONFIG']
  if (named !== undefined) return at(requireFile(files, namedPath(named, home)))

  const hermesPath = hermesHome === null ? null : join(hermesHome, 'config.yaml')
  const ofHermes = hermesPath === null ? null : inspectSource(files, hermesPath, 'of-hermes')
  if (ofHermes?.kind === 'found') return at(ofHermes)

  const ownPath = home === null ? null : join(home, '.config', 'caduceus', 'config.yaml')
  if (ownPath !== null && inspectSource(files, ownPath, 'own').kind !== 'absent') {
    return at(requireFile(files, ownPath))
  }

  if (hermesPath !== null && ofHermes?.kind === 'no-section') throw noSection(hermesPath)
  const looked = [hermesPath, ownPath].filter((path) => path !== null)
  throw fault('config/not-found', { looked: looked.join(', ') || 'HOME is not set' })
}

/** HERMES_HOME, or null when it is not set. Faults: config/environment. */
function hermesHomeOf(env: Environment): string | null {
  const value = env['HERMES_HOME']
  if (value === undefined) return null
  if (value.startsWith('/')) return resolve(value)
  throw fault('config/environment', {
    name: 'HERMES_HOME',
    found: value === '' ? 'empty' : JSON.stringify(value),
    wanted: 'an absolute path',
  })
}

function namedPath(value: string, home: string | null): string {
  if (value === '') {
    throw fault('config/environment', {
      name: 'CADUCEUS_CONFIG',
      found: 'empty',
      wanted: 'the path of a configuration file',
    })
  }
  return value.startsWith('~/') && home !== null ? join(home, value.slice(2)) : resolve(value)
}

type Inspection =
  | Readonly<{ kind: 'found'; source: ConfigSource; document: unknown }>
  | Readonly<{ kind: 'absent' | 'no-section' }>

function requireFile(files: ConfigFiles, path: string): Omit<FoundSource, 'place'> {
  const look = inspectSource(files, path, 'own')
  if (look.kind === 'found') return look
  if (look.kind === 'no-section') throw noSection(path)
  throw fault('config/unreadable', { path, reason: 'there is no such file' })
}

/** A file of our own is the configuration unless it has Hermes's shape; one of Hermes only if it has ours. */
function inspectSource(files: ConfigFiles, path: string, owner: 'own' | 'of-hermes'): Inspection {
  const document = readYaml(files, path)
  if (document === null) return { kind: 'absent' }
  const keys = topLevelKeys(document)
  const section = keys.includes(SECTION) ? SECTION : null
  const isWhole =
    !keys.some((key) => HERMES_KEYS.includes(key)) &&
    (owner === 'own' || keys.some((key) => CONFIG_KEYS.includes(key)))
  if (section === null && !isWhole) return { kind: 'no-section' }
  return {
    kind: 'found',
    source: { path, section },
    document: toPlainValue(path, document, section),
  }
}

function topLevelKeys(document: Document): readonly string[] {
  if (!isMap(document.contents)) return []
  return document.contents.items.map(({ key }) => String(isScalar(key) ? key.value : key))
}

function noSection(path: string): Error {
  return fault('config/no-section', { path, section: SECTION })
}

/** What loading a configuration asks of the file system (daemon/sys). */
export type ConfigFiles = Readonly<{
  readFileBounded(path: string, maxBytes: number): Uint8Array | null
  fileStatus(path: string): FileStatus | null
  /** Links resolved; null when nothing is there. People link their configuration into place. */
  realPath(path: string): string | null
}>

/** An anchor may stand for a tree; expanding more than this many aliases of one is an attack. */
const MAX_ALIASES = 100

/**
 * A YAML file, parsed but not yet converted; null when there is no file.
 * Faults: config/unreadable, with the line of what is malformed and without any of the text.
 */
function readYaml(files: ConfigFiles, path: string): Document | null {
  const bytes = readBytes(files, path)
  if (bytes === null) return null
  const lines = new LineCounter()
  const document = attempt(path, () =>
    parseDocument(decode(path, bytes), {
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
function toPlainValue(path: string, document: Document, key: string | null): unknown {
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
    const reason = isFault(error) ? error.details['reason'] : describeThrown(error)
    throw fault('config/unreadable', { path, reason: reason ?? 'unknown' }, error)
  }
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw fault('config/unreadable', { path, reason: 'it is not UTF-8 text' }, error)
  }
}

/** The parser recurses, and throws on what it cannot expand: both are faults of the file. */
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
