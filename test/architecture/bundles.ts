import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from '@jest/globals'

export const DIST = join(import.meta.dirname, '..', '..', 'dist')

const STATIC_IMPORT = /^(?:import|export)\b[^'"();]*?["']\.\/([^"']+\.mjs)["']/gm
/** The bundler names every module it puts in. */
export const MODULE = /^ *\/\/ ((?:daemon|commands|embedded-github|node_modules)\/\S+)$/gm

/** What the first group of a pattern matches, each time. */
export const matches = (pattern: RegExp, text: string): readonly string[] =>
  [...text.matchAll(pattern)].flatMap(([, found]) => found ?? [])

/** A bundle and everything that is loaded with it. */
export function closureOf(name: string): { kilobytes: number; modules: readonly string[] } {
  const texts = new Map<string, string>()
  const add = (file: string): void => {
    if (texts.has(file)) return
    const text = readFileSync(join(DIST, file), 'utf8')
    texts.set(file, text)
    for (const imported of matches(STATIC_IMPORT, text)) add(imported)
  }
  add(name)
  const all = [...texts.values()]
  return {
    kilobytes: all.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1000,
    modules: all.flatMap((text) => matches(MODULE, text)),
  }
}

/** The part that a source file is the way into. */
export function partWith(module: string): string {
  const holds = (name: string): boolean =>
    matches(MODULE, readFileSync(join(DIST, name), 'utf8')).includes(module)
  const found = readdirSync(DIST).filter((name) => name.endsWith('.mjs') && holds(name))
  expect(found).toHaveLength(1)
  return found[0] ?? ''
}

export const packagesIn = (modules: readonly string[]): readonly string[] => [
  ...new Set(
    modules.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  ),
]
