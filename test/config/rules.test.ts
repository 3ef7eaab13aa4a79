import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ConfigRig, makeConfigRig, problemsOf, warningsOf } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

const paths = (document: Readonly<Record<string, unknown>>, env = {}): readonly string[] =>
  problemsOf(rig.inspect({ worker_command: '/b', ...document }, env)).map(({ path }) => path)

describe('which values go together', () => {
  test.each([
    ['same', 'same'],
    ['Fix', 'fix '],
    ['🤖 auto-fix', '🤖\uFE0F auto-fix'],
    ['caf\u00E9', 'cafe\u0301'],
  ])('trigger labels %j and %j are the same one', (code, investigation) => {
    expect(paths({ ticket_label_code: code, ticket_label_investigation: investigation })).toEqual([
      'ticket_label_investigation',
    ])
  })

  test.each(['', ' ', 'x'.repeat(51)])('%j is no label', (label) => {
    expect(paths({ ticket_label_code: label })).toEqual(['ticket_label_code'])
  })

  test('a repository given twice is reported, whatever the case', () => {
    expect(paths({ watched_repos: ['a/b', 'octocat/Hello', 'Octocat/hello'] })).toEqual([
      'watched_repos[2]',
    ])
  })

  test.each(['hello', 'a/b/c', 'https://github.com/a/b', '-a/b', 'a/..', 'a/b.git', 'a b/c', ''])(
    '%j is no repository',
    (text) => {
      expect(paths({ watched_repos: [text] })).toEqual(['watched_repos[0]'])
    },
  )

  test.each([
    'GITHUB_TOKEN',
    'GH_TOKEN',
    'CADUCEUS_GITHUB_TOKEN',
    'AUTO_ISSUE_GITHUB_TOKEN',
    'GITHUB_*',
    'GH_*',
    'G*',
    'A*',
    '*',
    'A*B',
    'A**',
    'A=B',
    'A-B',
    'A B',
    'A\0',
    '',
  ])('worker_env_allowlist refuses %j', (entry) => {
    expect(paths({ worker_env_allowlist: ['HTTPS_PROXY', entry] })).toEqual([
      'worker_env_allowlist[1]',
    ])
  })

  test('worker_env_allowlist takes names and prefixes that are no credentials', () => {
    expect(
      paths({ worker_env_allowlist: ['HTTPS_PROXY', 'AWS_*', '_x9', 'GEMINI_API_KEY'] }),
    ).toEqual([])
  })

  test.each([['/etc/x'], ['../x'], ['a/../b'], ['./a'], ['~/x'], ['a\\b']])(
    'protected_paths refuses %j, which matches nothing in a repository',
    (glob) => {
      expect(paths({ protected_paths: ['ok/**', glob] })).toEqual(['protected_paths[1]'])
    },
  )

  test.each(['a b', 'a\nb', 'ä'])('github_token %j is refused and not shown', (github_token) => {
    const inspection = rig.inspect({ worker_command: '/b', github_token })
    const [problem] = problemsOf(inspection)
    expect(problem?.path).toBe('github_token')
    expect(problem?.found).toBe('a value that is not shown')
  })

  test('a blank github_token is no token and no problem', () => {
    expect(paths({ github_token: '  ' })).toEqual([])
  })

  test('comment_forbidden_strings takes no blank entry', () => {
    expect(paths({ comment_forbidden_strings: ['a', ' '] })).toEqual([
      'comment_forbidden_strings[1]',
    ])
  })

  test('executor_mode oci needs an image pinned by digest', () => {
    const digest = 'a'.repeat(64)
    const oci = (sandbox: unknown): readonly string[] => paths({ executor_mode: 'oci', sandbox })
    expect(paths({ executor_mode: 'oci' })).toEqual(['sandbox.image'])
    expect(oci({})).toEqual(['sandbox.image'])
    for (const image of [
      'worker:latest',
      `worker@sha256:${'A'.repeat(64)}`,
      `@sha256:${digest}`,
      '',
    ]) {
      expect(oci({ image })).toEqual(['sandbox.image'])
    }
    expect(oci({ image: `registry.example.com/worker@sha256:${digest}` })).toEqual([])
  })

  test('the machine’s own network is refused in words', () => {
    const [problem] = problemsOf(
      rig.inspect({ worker_command: '/b', sandbox: { network: 'host' } }),
    )
    expect(problem?.wanted).toContain('network of the machine itself cannot be shared')
  })

  test('sandbox.pass_env takes exact names that are no credentials', () => {
    const pass_env = [
      'HTTPS_PROXY',
      'AWS_*',
      'GITHUB_TOKEN',
      'CADUCEUS_RUN_ID',
      'HOME',
      'TMPDIR',
      'A=B',
    ]
    expect(paths({ sandbox: { pass_env } })).toEqual(
      [1, 2, 3, 4, 5, 6].map((index) => `sandbox.pass_env[${index}]`),
    )
  })
})

describe('what is not part of this version', () => {
  test('a backend that is not there stops the load', () => {
    expect(paths({ state_backend: 'sqlite' })).toEqual(['state_backend'])
  })
})

describe('what lies at the paths', () => {
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
