import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { LoadedConfig } from '../../daemon/config/load-config.ts'
import { type ConfigRig, makeConfigRig, problemsOf, warningsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

function loaded(document: unknown, env: Readonly<Record<string, string>> = {}): LoadedConfig {
  const inspection = rig.inspect(document, env)
  if (inspection.kind === 'invalid') throw inspection.fault
  return inspection.loaded
}

const paths = (document: unknown): readonly string[] =>
  problemsOf(rig.inspect({ worker_command: '/b', ...Object(document) })).map(({ path }) => path)

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

  test('state_dir may be a folder or nothing, not a file or a link', () => {
    mkdirSync(rig.path('folder'))
    symlinkSync(rig.path('folder'), rig.path('link'))
    rig.write('file', '')
    for (const name of ['folder', 'absent'])
      expect(paths({ state_dir: rig.path(name) })).toEqual([])
    for (const name of ['file', 'link']) {
      const problems = problemsOf(rig.inspect({ worker_command: '/b', state_dir: rig.path(name) }))
      expect(problems.map(({ path }) => path)).toEqual(['state_dir'])
    }
  })

  test('repo_storage_root is private where it exists, and never a link', () => {
    mkdirSync(rig.path('folder'))
    symlinkSync(rig.path('folder'), rig.path('link'))
    const repo_storage_root = rig.path('folder')
    for (const mode of [0o755, 0o750, 0o500]) {
      chmodSync(repo_storage_root, mode)
      const [problem] = problemsOf(rig.inspect({ worker_command: '/b', repo_storage_root }))
      expect(problem?.wanted).toBe('mode 0700')
      expect(problem?.found).toContain(`0${mode.toString(8)}`)
    }
    chmodSync(repo_storage_root, 0o700)
    expect(paths({ repo_storage_root })).toEqual([])
    expect(paths({ repo_storage_root: rig.path('link') })).toEqual(['repo_storage_root'])
  })

  test('a token in a file that others may read is warned about', () => {
    const text = 'worker_command: /b\nwatched_repos: [a/b]\ngithub_token: abc\n'
    const CADUCEUS_CONFIG = rig.write('own.yaml', text, 0o644)
    expect(warningsOf(rig.inspect({}, { CADUCEUS_CONFIG })).map(({ path }) => path)).toEqual([
      'github_token',
    ])
    chmodSync(CADUCEUS_CONFIG, 0o600)
    expect(warningsOf(rig.inspect({}, { CADUCEUS_CONFIG }))).toEqual([])
  })
})
