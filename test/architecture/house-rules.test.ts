import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** TypeScript files below a folder of the repository, by path. */
function sources(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

describe('does the code keep the rules of the house', () => {
  test('every folder of daemon has its rank among the layers', async () => {
    const rules = pathToFileURL(join(ROOT, '.dependency-cruiser.mjs')).href
    // Its shape is depcruise's; a wrong one leaves no names and fails.
    const { default: config } = (await import(rules)) as {
      default: { forbidden: readonly { name: string }[] }
    }
    const ranked = config.forbidden.flatMap(({ name }) => /^rank-(.+)$/.exec(name)?.[1] ?? [])
    const folders = readdirSync(join(ROOT, 'daemon'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
    expect([...ranked].sort()).toEqual([...folders].sort())
  })

  test('folders of daemon are flat, and no import climbs more than two levels', () => {
    const files = [...sources('daemon'), ...sources('commands'), ...sources('test')]
    expect(files.length).toBeGreaterThan(100)
    expect(
      files.filter((path) => path.startsWith('daemon/') && path.split('/').length > 3),
    ).toEqual([])
    const climbing = new RegExp(`from '${String.raw`(?:\.\./){3}`}`)
    expect(files.filter((path) => climbing.test(read(path)))).toEqual([])
  })

  test('no file is longer than 300 lines', () => {
    const files = ['daemon', 'commands', 'test', 'scripts'].flatMap(sources)
    const lines = (path: string): number => read(path).split('\n').length - 1
    const long = files.filter((path) => !path.includes('.generated.') && lines(path) > 300)
    expect(long).toEqual([])
  })

  test('every fault of the catalogue is thrown somewhere', () => {
    const users = [...sources('daemon'), ...sources('commands')].filter(
      (path) => !/^daemon\/core\/(?:[a-z]+-faults|fault-catalogue)\.ts$/.test(path),
    )
    const text = users.map(read).join('\n')
    expect(text).toContain(`'internal/unexpected'`)
    expect(Object.keys(FAULTS).filter((code) => !text.includes(`'${code}'`))).toEqual([])
  })

  test('no file has a name that says nothing', () => {
    const files = ['daemon', 'commands', 'test', 'scripts'].flatMap(sources)
    const vague = /\/(?:utils?|helpers?|common|misc|types)(?:\.test)?\.ts$/
    expect(files.filter((path) => vague.test(path))).toEqual([])
    const named = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.test|\.generated\.d)?\.ts$/
    expect(files.filter((path) => !named.test(path.split('/').at(-1) ?? ''))).toEqual([])
  })
})
