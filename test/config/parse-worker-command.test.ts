import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('what worker_command may be', () => {
  const worker = (worker_command: unknown, env = {}): readonly string[] =>
    problemsOf(rig.inspect({ worker_command }, env)).map(({ path }) => path)

  test('text names one program and is not split', () => {
    const inspection = rig.inspect({ worker_command: '/my tools/bridge -v' })
    expect(inspection.kind === 'valid' && inspection.loaded.config.workerCommand).toEqual([
      '/my tools/bridge -v',
    ])
  })

  test('${plugin_root} stands for the plugin in arguments, under Hermes', () => {
    const worker_command = ['python3', '${plugin_root}/x.py', '--at=${plugin_root}']
    const inspection = rig.inspect({ worker_command }, { HERMES_HOME: '/h' })
    expect(inspection.kind === 'valid' && inspection.loaded.config.workerCommand).toEqual([
      'python3',
      '/h/plugins/caduceus/x.py',
      '--at=/h/plugins/caduceus',
    ])
    expect(worker(worker_command)).toEqual(['worker_command[1]', 'worker_command[2]'])
  })

  test.each([
    ['${plugin_root}/bridge', 'worker_command'],
    [['${plugin_root}/bridge'], 'worker_command[0]'],
    [['/b', '$HOME'], 'worker_command[1]'],
    [['/b', '${plugin_rot}'], 'worker_command[1]'],
    [['/b', '${plugin_root}$'], 'worker_command[1]'],
    ['~/bridge', 'worker_command'],
    [['/b', '~'], 'worker_command[1]'],
    [['/b', 'a~b'], 'worker_command[1]'],
    ['./bridge', 'worker_command'],
    ['tools/bridge', 'worker_command'],
    ['', 'worker_command'],
    ['  ', 'worker_command'],
    [[''], 'worker_command[0]'],
    ['/b\0', 'worker_command'],
    [[], 'worker_command'],
    [['/b', 5], 'worker_command[1]'],
    [{ program: '/b' }, 'worker_command'],
  ])('%j is refused', (command, path) => {
    expect(worker(command, { HERMES_HOME: '/h' })).toEqual([path])
  })

  test('standalone it must be set; under Hermes there is a default', () => {
    const [problem] = problemsOf(rig.inspect({ watched_repos: ['a/b'] }))
    expect(problem?.path).toBe('worker_command')
    expect(problem?.fix).toContain('Set worker_command')
    expect(rig.inspect({ watched_repos: ['a/b'] }, { HERMES_HOME: '/h' }).kind).toBe('valid')
  })
})
