import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  BRIDGE,
  makeScene,
  readRecord,
  removeScene,
  type Scene,
  startBridge,
} from './bridge-scene.ts'

const PAGE = readFileSync('docs/the-bridge.md', 'utf8')

/** The first fenced block of a language under a heading of the page. */
function block(heading: string, language: string): string {
  const section = PAGE.split(`## ${heading}\n`)[1] ?? ''
  return new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(section)?.[1] ?? ''
}

/** The names in the first column of the first table under a heading. */
function firstColumn(heading: string): string[] {
  const section = PAGE.split(`## ${heading}\n`)[1] ?? ''
  const table = /(?:^\|.*\n)+/m.exec(section)?.[0] ?? ''
  return [...table.matchAll(/^\| `?([\w ]+?)`? \|/gm)].map((row) => row[1] ?? '').slice(1)
}

let scene: Scene
beforeEach(() => {
  scene = makeScene()
})
afterEach(() => removeScene(scene))

describe('Whether docs/the-bridge.md tells the truth', () => {
  test('the command for trying a bridge by hand works, and sets the nine variables', async () => {
    const environment = { HOME: scene.folder, PATH: scene.environment['PATH'] ?? '', BRIDGE }
    const command = block('Trying a bridge by hand', 'sh').replace(
      'env -i',
      `cd '${scene.worktree}' && env -i OPENCODE_FAKE_RECORD='${scene.record}'`,
    )
    const end = await startBridge(environment, { argv: ['/bin/sh', '-c', command] }).finished
    expect(end).toMatchObject({ code: 0, stdout: 'exit code 0\n', stderr: '' })
    expect(readdirSync(scene.worktree)).toEqual(['worker-result.json'])
    const set = readRecord(scene).variables.filter((name) => name.startsWith('CADUCEUS_'))
    expect(new Set(set)).toEqual(new Set(firstColumn('Environment').slice(0, 9)))
  })

  test('the complete small bridge works, and its exit code is that of the harness', async () => {
    const bin = join(scene.folder, 'bin')
    mkdirSync(bin)
    const bridge = join(scene.folder, 'my-bridge')
    writeFileSync(bridge, block('Another harness', 'sh'))
    writeFileSync(
      join(bin, 'my-harness'),
      '#!/bin/sh\ncat >seen\necho {} >worker-result.json\nexit 4\n',
    )
    for (const path of [bridge, join(bin, 'my-harness')]) chmodSync(path, 0o755)
    const prompt = join(scene.worktree, 'worker-prompt.md')
    writeFileSync(prompt, 'the task')
    const PATH = [bin, '/usr/bin', '/bin'].join(delimiter)
    const environment = { ...scene.environment, PATH, CADUCEUS_PROMPT_FILE: prompt }
    const end = await startBridge(environment, { argv: [bridge] }).finished
    expect(end).toEqual({ code: 4, signal: null, stdout: '', stderr: '' })
    expect(readFileSync(join(scene.worktree, 'seen'), 'utf8')).toBe('the task')
    expect(readFileSync(join(scene.worktree, 'worker-result.json'), 'utf8')).toBe('{}\n')
  })

  test('its table of variables names those that the bridge reads', () => {
    const source = readFileSync(BRIDGE, 'utf8')
    const read = [...source.matchAll(/^ {4}"(CADUCEUS_\w+)": /gm)].map((found) => found[1])
    expect(new Set([...firstColumn('Environment'), 'CADUCEUS_RESULT_PATH'])).toEqual(new Set(read))
  })

  test('its example of a result has exactly the fields of its table', () => {
    const example: unknown = JSON.parse(block('What the bridge must leave', 'json'))
    const fields = firstColumn('What the bridge must leave').map((name) => [
      name,
      expect.anything(),
    ])
    expect(example).toStrictEqual(Object.fromEntries(fields))
  })

  test('its exit codes are those that the bridge lists', () => {
    const source = readFileSync(BRIDGE, 'utf8')
    const listed = [...source.matchAll(/^ {2}(\d+|other) {2,}/gm)].map((found) => found[1])
    expect(firstColumn('Exit codes')).toEqual(listed)
  })
})
