import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  BRIDGE,
  changed,
  makeScene,
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
