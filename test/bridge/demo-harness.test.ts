import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { makeScene, PYTHON, removeScene, runBridge, type Scene } from './bridge-scene.ts'

const DEMO = resolve('templates/demo')
const ISSUE = readFileSync(join(DEMO, 'issue.md'), 'utf8')
const FORBIDDEN = /caduceus|opencode|gentle-ai|engram|hermes|worker-bridge/i

let scene: Scene
beforeEach(() => {
  scene = makeScene()
  cpSync(join(DEMO, 'project'), scene.worktree, { recursive: true })
  writeFileSync(join(scene.worktree, 'worker-prompt.md'), ISSUE)
})
afterEach(() => removeScene(scene))

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
    .filter((name) => !known.has(name) || read(name) !== readFileSync(join(template, name), 'utf8'))
    .filter((name) => name !== 'worker-prompt.md')
    .sort()
}

describe('What the scripted harness of the demo does', () => {
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
