import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { COMMANDS } from '../../commands/commands.ts'

// Each test of the plugin's Python side runs in a python3 of its own that sees no package of this machine.

const HERE = import.meta.dirname
const ROOT = resolve(HERE, '..', '..')
const PYTHON = ['-I', '-B', '-X', 'dev', join(HERE, 'test_shim.py')]

const names = JSON.parse(
  execFileSync('python3', [...PYTHON, '--list'], { encoding: 'utf8' }),
) as readonly string[]
const groups = [...new Set(names.map((name) => name.split('.')[1] ?? ''))]

describe.each(groups)('The plugin: %s', (group) => {
  const rows = names
    .filter((name) => name.split('.')[1] === group)
    .map((name) => [(name.split('.')[2] ?? '').replace(/^test_/, '').replaceAll('_', ' '), name])

  test.each(rows)('%s', (_, name) => {
    const end = spawnSync('python3', [...PYTHON, name ?? ''], { encoding: 'utf8', timeout: 55_000 })
    // An unclosed file or a lost process shows as a warning of development mode.
    const isClean = !/Warning|Exception ignored|still running/.test(end.stderr)
    if (end.status !== 0 || !isClean) throw new Error(end.stderr)
    expect(end.stderr).toMatch(/^Ran 1 test/m)
  })
})

describe("The plugin's record", () => {
  const record = JSON.parse(readFileSync(join(ROOT, 'plugin.manifest.json'), 'utf8')) as {
    minNode: string
    commands: readonly { name: string }[]
  }
  const packageJson = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    engines: { node: string }
  }

  test('every command of the program is in it', () => {
    const recorded = record.commands.map(({ name }) => name)
    const commands = Object.keys(COMMANDS).map((id) => id.replaceAll(':', ' '))
    expect(commands.filter((name) => !recorded.includes(name))).toEqual([])
  })

  test('it asks for the same Node as the package', () => {
    expect(packageJson.engines.node).toBe(`>=${record.minNode}`)
  })

  test('the skill names commands that exist', () => {
    const skill = readFileSync(join(ROOT, 'plugin-assets', 'skill', 'SKILL.md'), 'utf8')
    const named = [...skill.matchAll(/hermes caduceus ((?:queue |config )?[a-z-]+)/g)]
    expect(named.length).toBeGreaterThan(5)
    const recorded = record.commands.map(({ name }) => name)
    expect(named.map(([, name]) => name).filter((name) => !recorded.includes(name ?? ''))).toEqual(
      [],
    )
  })
})
