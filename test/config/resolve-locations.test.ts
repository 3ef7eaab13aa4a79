import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { LoadedConfig } from '../../daemon/config/load-config.ts'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

function loaded(document: unknown): LoadedConfig {
  const inspection = rig.inspect(document)
  if (inspection.kind === 'invalid') throw inspection.fault
  return inspection.loaded
}

const paths = (document: Readonly<Record<string, unknown>>): readonly string[] =>
  problemsOf(rig.inspect({ worker_command: '/b', ...document })).map(({ path }) => path)

describe('paths', () => {
  test('a leading ~ is the home folder, an embedded one a character', () => {
    const { config } = loaded({ worker_command: '/b', state_dir: '~', workdir_base: '/a/~/b' })
    expect(config.stateDir).toBe(rig.home)
    expect(config.workdirBase).toBe('/a/~/b')
  })

  test('relative ones count from the folder of the file', () => {
    const { config } = loaded({ worker_command: '/b', workdir_base: 'clones/here' })
    expect(config.workdirBase).toBe(rig.path('.config/caduceus/clones/here'))
  })

  test('another person’s home, a NUL and a ~ without HOME are problems', () => {
    expect(paths({ state_dir: '~root/x', log_path: 'a\0b' })).toEqual(['state_dir', 'log_path'])
    const CADUCEUS_CONFIG = rig.write('own.yaml', 'worker_command: /b\n')
    const problems = problemsOf(rig.inspect({}, { HOME: '', CADUCEUS_CONFIG }))
    expect(problems.map(({ path }) => path)).toEqual(['state_dir', 'workdir_base'])
  })
})
