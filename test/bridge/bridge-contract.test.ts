import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  BRIDGE,
  block,
  firstColumn,
  makeScene,
  NINE,
  readRecord,
  removeScene,
  runBridge,
  type Scene,
  script,
  startBridge,
  wasCalled,
} from './bridge-scene.ts'

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

describe('What the bridge makes of the result', () => {
  let output: string
  beforeEach(() => {
    output = join(scene.folder, 'output')
    mkdirSync(output)
  })

  const NO_RESULT = 'worker-bridge: the harness ended with 0 but left no worker-result.json\n'
  const MIB = 1024 * 1024

  test('without CADUCEUS_RESULT_PATH it stays at the root of the worktree', async () => {
    expect((await runBridge(scene, script(['result', { status: 'success' }]))).code).toBe(0)
    expect(readFileSync(join(scene.worktree, 'worker-result.json'), 'utf8')).toBe(
      '{"status": "success"}',
    )
  })

  test('with it, the result is moved there, private, and nothing else is left', async () => {
    const wanted = join(output, 'result.json')
    const end = await runBridge(scene, {
      CADUCEUS_RESULT_PATH: wanted,
      ...script(['result', { status: 'success' }]),
    })
    expect(end).toEqual({ code: 0, signal: null, stdout: '', stderr: '' })
    expect(readFileSync(wanted, 'utf8')).toBe('{"status": "success"}')
    expect(statSync(wanted).mode & 0o777).toBe(0o600)
    expect(readdirSync(output)).toEqual(['result.json'])
    expect(readdirSync(scene.worktree)).toEqual([])
  })

  test('the path may be the usual place', async () => {
    const wanted = join(scene.worktree, 'worker-result.json')
    expect((await runBridge(scene, { CADUCEUS_RESULT_PATH: wanted })).code).toBe(0)
    expect(readdirSync(scene.worktree)).toEqual(['worker-result.json'])
  })

  test('a harness may write to that path itself', async () => {
    const wanted = join(output, 'result.json')
    const end = await runBridge(scene, {
      CADUCEUS_RESULT_PATH: wanted,
      ...script(['write', wanted, '{}']),
    })
    expect(end.code).toBe(0)
    expect(readFileSync(wanted, 'utf8')).toBe('{}')
  })

  test('a result too large to be accepted stays too large', async () => {
    const wanted = join(output, 'result.json')
    await runBridge(scene, {
      CADUCEUS_RESULT_PATH: wanted,
      ...script(['fill', 'worker-result.json', 3 * MIB]),
    })
    expect(statSync(wanted).size).toBe(MIB + 1)
  })

  test('a harness that ends with 0 and leaves none is no success', async () => {
    const end = await runBridge(scene, script(['print', 'I could not do it.']))
    expect(end).toEqual({
      code: 3,
      signal: null,
      stdout: 'I could not do it.\n',
      stderr: NO_RESULT,
    })
  })

  test.each([
    ['a symbolic link', 'in the worktree', ['link', BRIDGE]],
    ['a symbolic link', 'to be moved', ['link', BRIDGE]],
    ['a directory', 'in the worktree', ['directory', 'worker-result.json']],
    ['a directory', 'to be moved', ['directory', 'worker-result.json']],
  ] as const)('%s %s is no result', async (_, place, step) => {
    const wanted = place === 'to be moved' ? join(output, 'result.json') : undefined
    const end = await runBridge(scene, { CADUCEUS_RESULT_PATH: wanted, ...script(step) })
    expect(end).toMatchObject({ code: 3, stderr: NO_RESULT })
    expect(readdirSync(output)).toEqual([])
  })

  test('a result of before, in either place, does not count', async () => {
    const wanted = join(output, 'result.json')
    for (const path of [wanted, join(scene.worktree, 'worker-result.json')]) {
      writeFileSync(path, '{"status": "success"}')
    }
    const end = await runBridge(scene, { CADUCEUS_RESULT_PATH: wanted, ...script() })
    expect(end).toMatchObject({ code: 3, stderr: NO_RESULT })
    expect(readdirSync(output)).toEqual([])
  })

  test('what cannot be cleared away beforehand stops the run before it costs anything', async () => {
    mkdirSync(join(scene.worktree, 'worker-result.json'))
    const end = await runBridge(scene)
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(/^worker-bridge: an old worker-result\.json cannot be removed: /)
    expect(wasCalled(scene)).toBe(false)
  })

  test('a harness that failed keeps its exit code and its result is not handed over', async () => {
    const end = await runBridge(scene, {
      CADUCEUS_RESULT_PATH: join(output, 'result.json'),
      ...script(['result'], ['exit', 5]),
    })
    expect(end.code).toBe(5)
    expect(readdirSync(output)).toEqual([])
  })
})

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
    const [bridge, harness] = [join(scene.folder, 'my-bridge'), join(bin, 'my-harness')]
    writeFileSync(bridge, block('Another harness', 'sh'))
    writeFileSync(harness, '#!/bin/sh\ncat >seen\necho {} >worker-result.json\nexit 4\n')
    for (const path of [bridge, harness]) chmodSync(path, 0o755)
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
