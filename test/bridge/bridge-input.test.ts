import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  BRIDGE,
  makeScene,
  readRecord,
  removeScene,
  runBridge,
  type Scene,
  wasCalled,
} from './bridge-scene.ts'

const NINE = [
  'CADUCEUS_ISSUE_NUMBER',
  'CADUCEUS_ISSUE_TITLE',
  'CADUCEUS_ISSUE_BODY',
  'CADUCEUS_ISSUE_REPO',
  'CADUCEUS_ISSUE_LABELS_JSON',
  'CADUCEUS_WORKTREE_PATH',
  'CADUCEUS_RUN_ID',
  'CADUCEUS_BRANCH_NAME',
  'CADUCEUS_CONTEXT_JSON',
]

let scene: Scene
beforeEach(() => {
  scene = makeScene()
})
afterEach(() => removeScene(scene))

describe('What the bridge accepts as input', () => {
  test('the nine variables are enough', async () => {
    const end = await runBridge(scene)
    expect(end).toEqual({ code: 0, signal: null, stdout: '', stderr: '' })
    expect(wasCalled(scene)).toBe(true)
  })

  test('an issue with an empty body, no labels and an empty title is fine', async () => {
    const end = await runBridge(scene, {
      CADUCEUS_ISSUE_BODY: '',
      CADUCEUS_ISSUE_TITLE: '',
      CADUCEUS_ISSUE_LABELS_JSON: '[]',
    })
    expect(end.code).toBe(0)
  })

  test('all missing variables are named at once', async () => {
    const end = await runBridge(scene, Object.fromEntries(NINE.map((name) => [name, undefined])))
    expect(end.code).toBe(2)
    expect(end.stderr.trim().split('\n')).toEqual(
      NINE.map((name) => `worker-bridge: ${name} is not set`),
    )
    expect(wasCalled(scene)).toBe(false)
  })

  test.each(NINE)('without %s nothing is started', async (name) => {
    const end = await runBridge(scene, { [name]: undefined })
    expect(end.code).toBe(2)
    expect(end.stderr).toBe(`worker-bridge: ${name} is not set\n`)
    expect(wasCalled(scene)).toBe(false)
  })

  test.each([
    ['CADUCEUS_ISSUE_NUMBER', 'fourty-two'],
    ['CADUCEUS_ISSUE_NUMBER', ''],
    ['CADUCEUS_ISSUE_NUMBER', '-1'],
    ['CADUCEUS_ISSUE_NUMBER', '٤٢'],
    ['CADUCEUS_ISSUE_LABELS_JSON', '["bug"'],
    ['CADUCEUS_ISSUE_LABELS_JSON', '{"bug":true}'],
    ['CADUCEUS_ISSUE_LABELS_JSON', '[1]'],
    ['CADUCEUS_WORKTREE_PATH', 'tmp'],
    ['CADUCEUS_WORKTREE_PATH', '/nowhere/at/all'],
    ['CADUCEUS_PROMPT_FILE', 'nothing.md'],
    ['CADUCEUS_PROMPT_FILE', ''],
    ['CADUCEUS_CONTEXT_FILE', 'nothing.json'],
    ['CADUCEUS_RESULT_PATH', ''],
    ['CADUCEUS_RESULT_PATH', 'tmp/worker-result.json'],
    ['CADUCEUS_RESULT_PATH', '/nowhere/at/all/worker-result.json'],
    ['CADUCEUS_RESULT_PATH', '/'],
  ])('%s = "%s" is refused without showing any value', async (name, value) => {
    const end = await runBridge(scene, { [name]: value })
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(new RegExp(`^worker-bridge: ${name} [a-zA-Z ]+\\n$`))
    expect(wasCalled(scene)).toBe(false)
  })

  test('problems of different kinds are reported together', async () => {
    const end = await runBridge(scene, {
      CADUCEUS_ISSUE_NUMBER: 'x',
      CADUCEUS_RUN_ID: undefined,
      CADUCEUS_PROMPT_FILE: '/nowhere.md',
    })
    expect(end.code).toBe(2)
    expect(end.stderr.trim().split('\n')).toHaveLength(3)
  })

  test.each(['directory', 'link'])('a %s is no prompt file', async (kind) => {
    const path = join(scene.worktree, 'prompt')
    if (kind === 'directory') mkdirSync(path)
    else symlinkSync(BRIDGE, path)
    expect((await runBridge(scene, { CADUCEUS_PROMPT_FILE: path })).code).toBe(2)
  })
})

describe('Which prompt the harness is given', () => {
  test('the named file, also by a path relative to the worktree', async () => {
    writeFileSync(join(scene.worktree, 'worker-prompt.md'), 'the usual one')
    writeFileSync(join(scene.worktree, 'named.md'), 'the named one')
    await runBridge(scene, { CADUCEUS_PROMPT_FILE: 'named.md' })
    expect(readRecord(scene).prompt).toBe('the named one')
  })

  test('else worker-prompt.md of the worktree', async () => {
    writeFileSync(join(scene.worktree, 'worker-prompt.md'), 'the usual one')
    await runBridge(scene)
    expect(readRecord(scene).prompt).toBe('the usual one')
  })

  test('else one made of the variables, outside the worktree and gone afterwards', async () => {
    await runBridge(scene, { CADUCEUS_ISSUE_BODY: 'Before\n````\nnot the end\n````\nAfter' })
    const { prompt, files } = readRecord(scene)
    expect(prompt).toContain('issue 42 of octo/repo')
    expect(prompt).toContain('```\nA title nobody else has\n```')
    expect(prompt).toContain('`````\nBefore\n````\nnot the end\n````\nAfter\n`````')
    expect(prompt).toContain('🤖 auto-fix, bug')
    expect(prompt).toContain('automation/issue-42-run-7')
    expect(prompt).toContain('{"comments":[]}')
    expect(prompt).toContain('worker-result.json')
    expect(files).toEqual([])
    expect(readdirSync(scene.worktree)).toEqual(['worker-result.json'])
    expect(readdirSync(scene.temporary)).toEqual([])
  })

  test('that one holds the whole context when there is a file of it', async () => {
    writeFileSync(join(scene.worktree, 'worker-context.json'), '{"whole":true}')
    await runBridge(scene, { CADUCEUS_CONTEXT_FILE: 'worker-context.json' })
    expect(readRecord(scene).prompt).toContain('{"whole":true}')
  })
})
