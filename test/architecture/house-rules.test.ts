import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import { ROOT, read, sources } from './source-files.ts'

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

  test('no file is longer than 300 lines, tests than 600', () => {
    const files = ['daemon', 'commands', 'embedded-github', 'test', 'scripts'].flatMap(sources)
    const lines = (path: string): number => read(path).split('\n').length - 1
    const most = (path: string): number => (path.startsWith('test/') ? 600 : 300)
    expect(files.filter((path) => lines(path) > most(path))).toEqual([])
  })

  test('every fault of the catalogue is thrown somewhere', () => {
    const users = [...sources('daemon'), ...sources('commands')].filter(
      (path) => !/^daemon\/core\/(?:[a-z]+-faults|fault-catalogue)\.ts$/.test(path),
    )
    const text = users.map(read).join('\n')
    expect(text).toContain(`'internal/unexpected'`)
    expect(Object.keys(FAULTS).filter((code) => !text.includes(`'${code}'`))).toEqual([])
  })

  test('links are followed by the kernel only', () => {
    // Both of Node's own ways spin for ever on some links that lead through themselves.
    const files = ['daemon', 'commands', 'embedded-github', 'test', 'scripts'].flatMap(sources)
    const byNode = /\brealpath(?:Sync)?\(/
    expect(files.filter((path) => byNode.test(read(path)))).toEqual([])
    expect(files.filter((path) => read(path).includes('realpathSync.native('))).not.toEqual([])
  })

  test('no file has a name that says nothing', () => {
    const files = ['daemon', 'commands', 'embedded-github', 'test', 'scripts'].flatMap(sources)
    const vague = /\/(?:utils?|helpers?|common|misc|types)(?:\.test)?\.ts$/
    expect(files.filter((path) => vague.test(path))).toEqual([])
    const named = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.test)?\.ts$/
    expect(files.filter((path) => !named.test(path.split('/').at(-1) ?? ''))).toEqual([])
  })
})
