import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  BRIDGE,
  block,
  changed,
  firstColumn,
  makeScene,
  NINE,
  PYTHON,
  readRecord,
  removeScene,
  runBridge,
  type Scene,
  script,
  startBridge,
  until,
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

/** A folder for PATH with one file in it called `opencode`. */
function pathWith(content: string | null, mode = 0o755): string {
  const folder = join(scene.folder, 'bin')
  mkdirSync(folder)
  if (content !== null) {
    writeFileSync(join(folder, 'opencode'), content)
    chmodSync(join(folder, 'opencode'), mode)
  }
  return folder
}

describe('How the bridge calls the harness', () => {
  test('it runs the gentle-orchestrator agent on the prompt file, the message first', async () => {
    const prompt = join(scene.worktree, 'worker-prompt.md')
    writeFileSync(prompt, 'the task')
    await runBridge(scene, { CADUCEUS_PROMPT_FILE: prompt })
    const [command, message, ...options] = readRecord(scene).argv
    expect(command).toBe('run')
    expect(message).toMatch(/^Carry out the task in the attached file\./)
    expect(options).toEqual([
      '--agent',
      'gentle-orchestrator',
      '--title',
      'Run run-7',
      '--file',
      prompt,
    ])
  })

  test('it starts as a program by itself, whatever the working directory and PWD are', async () => {
    const environment = { ...scene.environment, PWD: '/usr' }
    expect((await startBridge(environment, { argv: [BRIDGE] }).finished).code).toBe(0)
    expect(readRecord(scene).cwd).toBe(scene.worktree)
    expect(readRecord(scene).pwd).toBe(scene.worktree)
  })

  test('the harness has nothing on stdin and stays in group and session of the bridge', async () => {
    const bridge = startBridge(scene.environment)
    await bridge.finished
    const { stdin, group, session } = readRecord(scene)
    expect({ stdin, group, session }).toEqual({
      stdin: 'null',
      group: bridge.child.pid,
      session: bridge.child.pid,
    })
  })

  test('descriptor 3 reaches the harness when the supervisor passes one', async () => {
    const extraDescriptor = openSync(join(scene.folder, 'lock'), 'w')
    await startBridge(scene.environment, { extraDescriptor }).finished
    closeSync(extraDescriptor)
    expect(readRecord(scene).descriptor3).toBe(true)
  })

  test('no text of the issue is in the arguments, however long it is', async () => {
    const long = 'nobody else has this '.repeat(5_000)
    const prompt = join(scene.worktree, 'worker-prompt.md')
    writeFileSync(prompt, long.repeat(10))
    const end = await runBridge(scene, {
      CADUCEUS_ISSUE_TITLE: long,
      CADUCEUS_ISSUE_BODY: long,
      CADUCEUS_CONTEXT_JSON: long,
    })
    expect(end.code).toBe(0)
    const { argv, prompt: read } = readRecord(scene)
    expect(read).toHaveLength(long.length * 10)
    expect(argv.join(' ')).not.toContain('nobody else has')
    expect(Buffer.byteLength(argv.join(' '))).toBeLessThan(1_000)
  })

  test('output is there before the harness has ended, on the stream it was written to', async () => {
    const gate = join(scene.folder, 'gate')
    const bridge = startBridge({
      ...scene.environment,
      ...script(
        ['print', 'one'],
        ['complain', 'two'],
        ['wait', gate],
        ['print', 'three'],
        ['result'],
      ),
    })
    await until(() => bridge.printed().includes('one\n') && bridge.printed().includes('two\n'))
    expect(bridge.child.exitCode).toBeNull()
    writeFileSync(gate, '')
    expect(await bridge.finished).toEqual({
      code: 0,
      signal: null,
      stdout: 'one\nthree\n',
      stderr: 'two\n',
    })
  })

  test('nothing of the bridge is printed around the output of the harness', async () => {
    const end = await runBridge(scene, script(['print', 'called'], ['result']))
    expect(end.stdout + end.stderr).toBe('called\n')
  })

  test('the worktree holds nothing new but the result', async () => {
    writeFileSync(join(scene.worktree, 'source.py'), '')
    await runBridge(scene)
    expect(readdirSync(scene.worktree).sort()).toEqual(['source.py', 'worker-result.json'])
  })
})

describe('How the bridge ends', () => {
  test('with the exit code of the harness, which is called once only', async () => {
    const end = await runBridge(scene, script(['print', 'called'], ['exit', 7]))
    expect(end).toEqual({ code: 7, signal: null, stdout: 'called\n', stderr: '' })
  })

  test('with 128 + n when the harness was ended by signal n', async () => {
    expect((await runBridge(scene, script(['kill', 9]))).code).toBe(137)
  })

  test('with 127 when there is no harness', async () => {
    const end = await runBridge(scene, { PATH: pathWith(null) })
    expect(end.code).toBe(127)
    expect(end.stderr).toMatch(/^worker-bridge: the harness was not found; .*\n$/)
    expect(readdirSync(scene.temporary)).toEqual([])
  })

  test.each([
    ['is not executable', '#!/bin/sh\n', 0o644],
    ['is no program', 'nothing a kernel knows', 0o755],
  ])('with 126 when the harness %s', async (_, content, mode) => {
    const end = await runBridge(scene, { PATH: pathWith(content, mode) })
    expect(end.code).toBe(126)
    expect(end.stderr).toMatch(/^worker-bridge: the harness cannot be executed: .*\n$/)
  })

  test.each([
    ['SIGTERM', { code: null, signal: 'SIGTERM' }],
    ['SIGINT', { code: 130, signal: null }],
  ] as const)('a %s to the process group ends both, without a word', async (signal, expected) => {
    const never = join(scene.folder, 'never')
    const bridge = startBridge(changed(scene, script(['print', 'ready'], ['wait', never])))
    await until(() => bridge.printed().includes('ready'))
    process.kill(-(bridge.child.pid ?? 0), signal)
    // `finished` waits for the output to close, and the harness holds it too.
    const end = await bridge.finished
    expect(end).toMatchObject(expected)
    expect(end.stderr).not.toContain('worker-bridge')
  })

  test.each([
    ['forgets to return the exit code', 'harness.wait()', 1, /must return the exit code/],
    ['returns a code that would wrap around to 0', 'harness.wait()\n    return 256', 255, /^$/],
  ])('a hook that %s is no success', async (_, replacement, code, stderr) => {
    const source = readFileSync(BRIDGE, 'utf8')
    const edited = join(scene.folder, 'bridge.py')
    writeFileSync(edited, source.replace('return harness.wait()', replacement))
    const end = await startBridge(scene.environment, { argv: [PYTHON, edited] }).finished
    expect(wasCalled(scene)).toBe(true)
    expect(end.code).toBe(code)
    expect(end.stderr).toMatch(stderr)
  })
})

describe('Where to change the harness', () => {
  test('there is one hook with the documented parameters, and only it names the harness', () => {
    const source = readFileSync(BRIDGE, 'utf8')
    const [head, plumbing] = source.split('# === Plumbing')
    expect(head).toMatch(
      /def invoke_harness\(\s*worktree: str, prompt_file: str, run_id: str, labels: list\[str\], branch_name: str\s*\)/,
    )
    expect(plumbing).not.toMatch(/opencode|gentle/i)
  })
})

describe('What the scripted harness of the demo does', () => {
  const DEMO = resolve('templates/demo')
  const ISSUE = readFileSync(join(DEMO, 'issue.md'), 'utf8')
  const FORBIDDEN = /caduceus|opencode|gentle-ai|engram|hermes|worker-bridge/i

  beforeEach(() => {
    cpSync(join(DEMO, 'project'), scene.worktree, { recursive: true })
    writeFileSync(join(scene.worktree, 'worker-prompt.md'), ISSUE)
  })

  const runDemo = (mode: string) =>
    runBridge(scene, {
      PATH: [DEMO, dirname(PYTHON), '/usr/bin', '/bin'].join(delimiter),
      OPENCODE_DEMO_MODE: mode,
    })

  const read = (name: string): string => readFileSync(join(scene.worktree, name), 'utf8')

  /** Last line of the project's own tests. */
  function testProject(): string {
    const argv = ['-B', '-m', 'unittest']
    const tests = spawnSync(PYTHON, argv, { cwd: scene.worktree, encoding: 'utf8' })
    return tests.stderr.trim().split('\n').at(-1) ?? ''
  }

  /** Files that are not as in the template, and those that are new. */
  function changedFiles(): string[] {
    const template = join(DEMO, 'project')
    const known = new Set(readdirSync(template))
    return readdirSync(scene.worktree)
      .filter(
        (name) => !known.has(name) || read(name) !== readFileSync(join(template, name), 'utf8'),
      )
      .filter((name) => name !== 'worker-prompt.md')
      .sort()
  }

  test('the project fails exactly one test, and the issue names it', () => {
    expect(testProject()).toBe('FAILED (failures=1)')
    expect(ISSUE).toContain('test_rounds_up_to_a_full_hour')
    expect(ISSUE).toMatch(/^# .+\n\n/)
  })

  test('fix: it mends the source, the test passes, and the result tells what was seen', async () => {
    const end = await runDemo('fix')
    expect(end).toMatchObject({ code: 0, stderr: '' })
    expect(testProject()).toBe('OK')
    expect(changedFiles()).toEqual(['timesheet.py', 'worker-result.json'])
    const result: unknown = JSON.parse(read('worker-result.json'))
    expect(result).toEqual({
      status: 'success',
      summary: expect.stringContaining('| before | 5 | 1 (`test_rounds_up_to_a_full_hour`) |'),
      commit_message: expect.stringMatching(/^fix\(report\): .+\n\n.+\n$/),
      pull_request_title: expect.stringMatching(/^fix\(report\): .{1,60}$/),
      artifacts: {
        tests_before: { run: 5, failed: 1, failing: ['test_rounds_up_to_a_full_hour'] },
        tests_after: { run: 5, failed: 0, failing: [] },
      },
    })
    expect(read('worker-result.json')).not.toMatch(FORBIDDEN)
    expect(end.stdout).toContain('+    minutes = round(seconds / 60)')
  })

  test('fix again: with nothing left to mend it fails and claims nothing', async () => {
    await runDemo('fix')
    expect((await runDemo('fix')).code).toBe(1)
    expect(changedFiles()).toEqual(['timesheet.py'])
  })

  test('investigate: it hands in findings and edits nothing', async () => {
    const end = await runDemo('investigate')
    expect(end).toMatchObject({ code: 0, stderr: '' })
    expect(changedFiles()).toEqual(['worker-result.json'])
    expect(read('worker-result.json')).toContain('| `7:59:45` | `7:60` |')
    expect(read('worker-result.json')).not.toMatch(FORBIDDEN)
  })

  test('fail: it ends with 1, leaves no result and edits nothing', async () => {
    const end = await runDemo('fail')
    expect(end.code).toBe(1)
    expect(end.stdout).toMatch(/Giving up\.\n$/)
    expect(changedFiles()).toEqual([])
  })

  test('a task about something else is not touched', async () => {
    writeFileSync(join(scene.worktree, 'worker-prompt.md'), 'Paint the house.')
    expect((await runDemo('fix')).code).toBe(1)
    expect(changedFiles()).toEqual([])
  })
})
