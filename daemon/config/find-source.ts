// Which file is the configuration: CADUCEUS_CONFIG alone when it is set, else the section of the Hermes
// configuration, else the standalone file.

import { dirname, join, resolve } from 'node:path'
import { type Document, isMap, isScalar } from 'yaml'
import { fault } from '../core/fault.ts'
import { homeDirectory } from '../sys/environment.ts'
import { type ConfigFiles, readYaml, toPlainValue } from './read-yaml.ts'
import type { ConfigContext } from './resolve-locations.ts'
import { CONFIG_KEYS } from './schema.ts'

type Environment = Readonly<Record<string, string>>

/** Where the configuration was found; `section` is null when the whole file is the configuration. */
export type ConfigSource = Readonly<{ path: string; section: 'caduceus' | null }>

export type FoundSource = Readonly<{
  source: ConfigSource
  context: ConfigContext
  document: unknown
}>

const SECTION = 'caduceus'

/** Any of these at the top makes a file one of Hermes. */
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
  const at = (found: Omit<FoundSource, 'context'>): FoundSource => ({
    ...found,
    context: { home, hermesHome, configDirectory: dirname(found.source.path) },
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
  const read = [hermesPath, ownPath].filter((path) => path !== null)
  throw fault('config/not-found', { looked: read.join(', ') || 'HOME is not set' })
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

function requireFile(files: ConfigFiles, path: string): Omit<FoundSource, 'context'> {
  const inspection = inspectSource(files, path, 'own')
  if (inspection.kind === 'found') return inspection
  if (inspection.kind === 'no-section') throw noSection(path)
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
