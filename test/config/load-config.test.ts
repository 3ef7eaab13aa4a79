import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { HERMES_KEYS } from '../../daemon/config/find-source.ts'
import { inspectConfig, type LoadedConfig, loadConfig } from '../../daemon/config/load-config.ts'
import { asFault, type Fault } from '../../daemon/core/fault.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import {
  CONFIG_FILES,
  type ConfigRig,
  makeConfigRig,
  problemsOf,
  warningsOf,
} from '../support/config-rig.ts'

const STANDALONE = '.config/caduceus/config.yaml'
const OURS = 'watched_repos: [octocat/hello]\nworker_command: /bridge\n'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

const load = (env: Readonly<Record<string, string>> = {}): LoadedConfig =>
  loadConfig(CONFIG_FILES, rig.env(env))

function faultOf(env: Readonly<Record<string, string>> = {}): Fault {
  try {
    load(env)
  } catch (error) {
    return asFault(error)
  }
  expect('a fault').toBe('thrown')
  return asFault(null)
}

describe('where the configuration is found', () => {
  test('CADUCEUS_CONFIG decides over the other places', () => {
    const path = rig.write('my own.yaml', OURS)
    rig.write(STANDALONE, OURS)
    expect(load({ CADUCEUS_CONFIG: path }).source).toEqual({ path, section: null })
    expect(load({ CADUCEUS_CONFIG: '~/my own.yaml' }).source.path).toBe(path)
  })

  test('CADUCEUS_CONFIG naming no file is fatal even when other sources exist', () => {
    rig.write(STANDALONE, OURS)
    const missing = faultOf({ CADUCEUS_CONFIG: rig.path('none.yaml') })
    expect(missing.code).toBe('config/unreadable')
    expect(missing.message).toContain('none.yaml')
    expect(faultOf({ CADUCEUS_CONFIG: rig.home }).details['reason']).toBe('not a regular file')
    expect(faultOf({ CADUCEUS_CONFIG: '' }).code).toBe('config/environment')
  })

  test('the section of the Hermes configuration comes before the standalone file', () => {
    const path = rig.write('hermes/config.yaml', 'model: m\ncaduceus:\n  dry_run: true\n')
    rig.write(STANDALONE, OURS)
    const loaded = load({ HERMES_HOME: rig.path('hermes') })
    expect(loaded.source).toEqual({ path, section: 'caduceus' })
    expect(loaded.config.dryRun).toBe(true)
  })

  test('other keys beside the section are nobody’s business', () => {
    rig.write('hermes/config.yaml', 'anything: {at: all}\ncaduceus: {watched_repos: [a/b]}\n')
    expect(load({ HERMES_HOME: rig.path('hermes') }).warnings).toEqual([])
  })

  test.each(HERMES_KEYS)(
    'a Hermes file (%s) without our section falls through if it can',
    (key) => {
      const hermes = rig.write('hermes/config.yaml', `${key}: x\nwatched_repos: [a/b]\n`)
      const env = { HERMES_HOME: rig.path('hermes') }
      const missing = faultOf(env)
      expect(missing.code).toBe('config/no-section')
      expect(missing.message).toContain('"caduceus:"')
      expect(missing.message).toContain(hermes)
      const path = rig.write(STANDALONE, OURS)
      expect(load(env).source).toEqual({ path, section: null })
    },
  )

  test.each(['', '# nothing yet\n', 'display: dark\n', '- a list\n'])(
    'a Hermes file that holds nothing of ours (%j) falls through',
    (text) => {
      rig.write('hermes/config.yaml', text)
      const path = rig.write(STANDALONE, OURS)
      expect(load({ HERMES_HOME: rig.path('hermes') }).source.path).toBe(path)
    },
  )

  test('without a Hermes file the standalone one is used', () => {
    const path = rig.write(STANDALONE, `caduceus:\n  ${OURS.replace('\n', '\n  ')}`)
    const loaded = load({ HERMES_HOME: rig.path('hermes') })
    expect(loaded.source).toEqual({ path, section: 'caduceus' })
  })

  test('a standalone file of Hermes’s shape names the missing section', () => {
    rig.write(STANDALONE, 'model: m\n')
    expect(faultOf().code).toBe('config/no-section')
  })

  test('HERMES_HOME empty or relative is an error, whatever else is there', () => {
    const CADUCEUS_CONFIG = rig.write('own.yaml', OURS)
    rig.write(STANDALONE, OURS)
    for (const HERMES_HOME of ['', 'relative/path', '~/hermes']) {
      const found = faultOf({ HERMES_HOME, CADUCEUS_CONFIG })
      expect(found.code).toBe('config/environment')
      expect(found.details['name']).toBe('HERMES_HOME')
    }
  })

  test('when there is none, the places that were looked at are named', () => {
    const found = faultOf({ HERMES_HOME: rig.path('hermes') })
    expect(found.code).toBe('config/not-found')
    expect(found.message).toContain(rig.path('hermes', 'config.yaml'))
    expect(found.message).toContain(rig.path(STANDALONE))
    expect(inspectConfig(CONFIG_FILES, {}).kind).toBe('invalid')
  })

  test('a configuration linked into place is read where it lies', () => {
    const path = rig.write('dotfiles/caduceus.yaml', OURS)
    mkdirSync(rig.path('.config/caduceus'), { recursive: true })
    symlinkSync(path, rig.path(STANDALONE))
    expect(load().source.path).toBe(rig.path(STANDALONE))
  })
})

describe('what is no configuration', () => {
  test.each([
    '',
    '# only a comment\n',
    '- a\n- b\n',
    'just text\n',
    'caduceus:\n',
    'caduceus: [a]\n',
  ])('a file that is empty or no mapping (%j) is one problem', (text) => {
    rig.write(STANDALONE, text)
    const inspection = inspectConfig(CONFIG_FILES, rig.env())
    expect(problemsOf(inspection)).toEqual([
      expect.objectContaining({ path: '(document)', wanted: 'a mapping of keys to values' }),
    ])
  })

  const token = ['gh', 'p_', 'a'.repeat(36)].join('')
  test.each([
    ['bytes that are not UTF-8', new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe]), /UTF-8/],
    ['UTF-16', Buffer.from('\uFEFFwatched_repos: []\n', 'utf16le'), /UTF-8/],
    ['malformed YAML', `a: 1\ngithub_token: "${token}\nb: 'x\n`, /line \d+, column \d+/],
    ['a key given twice', 'dry_run: true\ndry_run: false\n', /line 2, column 1/],
    ['two documents', 'dry_run: true\n---\ndry_run: false\n', /line 2/],
    ['a file that is too large', '#'.repeat(LIMITS.configurationBytes + 1), /too large/],
    ['nesting without end', '['.repeat(200_000), /./],
    ['an unknown alias', 'watched_repos: *nobody\n', /./],
    [
      'aliases that expand without measure',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f']
        .map((name, index) => {
          const before = String.fromCharCode(name.charCodeAt(0) - 1)
          return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(',')}]${index < 4 ? '' : '\n'}`
        })
        .join('\n')}`,
      /alias/,
    ],
  ])('%s is told clearly', (_, content, reason) => {
    const path = rig.write(STANDALONE, content)
    const found = faultOf()
    expect(found.code).toBe('config/unreadable')
    expect(found.details['path']).toBe(path)
    expect(String(found.details['reason'])).toMatch(reason)
    expect(found.message + JSON.stringify(found.details)).not.toContain(token)
  })

  test('a byte order mark and keys that are lists do no harm', () => {
    rig.write(STANDALONE, `\uFEFF${OURS}? [a, b]\n: 1\n`)
    expect(load().warnings).toHaveLength(1)
  })
})

describe('paths', () => {
  function loaded(document: unknown, env: Readonly<Record<string, string>> = {}): LoadedConfig {
    const inspection = rig.inspect(document, env)
    if (inspection.kind === 'invalid') throw inspection.fault
    return inspection.loaded
  }

  const paths = (document: unknown): readonly string[] =>
    problemsOf(rig.inspect({ worker_command: '/b', ...Object(document) })).map(({ path }) => path)

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
