import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  BRIDGE,
  makeScene,
  removeScene,
  runBridge,
  type Scene,
  script,
  wasCalled,
} from './bridge-scene.ts'

let scene: Scene
let output: string
beforeEach(() => {
  scene = makeScene()
  output = join(scene.folder, 'output')
  mkdirSync(output)
})
afterEach(() => removeScene(scene))

const NO_RESULT = 'worker-bridge: the harness ended with 0 but left no worker-result.json\n'
const MIB = 1024 * 1024

describe('What the bridge makes of the result', () => {
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
