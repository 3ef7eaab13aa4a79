import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

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

  test.each(['(', '[z-a]', 'a{2,1}', '(?P<x>a)'])('%j is no ignore pattern', (pattern) => {
    expect(paths({ comment_ignore_patterns: [pattern] })).toEqual(['comment_ignore_patterns[0]'])
  })

  test('ignore patterns tell upper from lower case unless (?i) says otherwise', () => {
    const comment_ignore_patterns = ['^Renovate', '(?i)^dependabot']
    const inspection = rig.inspect({ worker_command: '/b', comment_ignore_patterns })
    const [exact, loose] =
      inspection.kind === 'valid' ? inspection.loaded.config.commentIgnorePatterns : []
    expect([exact?.test('Renovate'), exact?.test('renovate')]).toEqual([true, false])
    expect([loose?.test('Dependabot'), loose?.test('dependabot')]).toEqual([true, true])
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

describe('which keys have no effect in this version', () => {
  test('a value of their own is warned about; their default, written out, is not', () => {
    const warned = rig.inspect({
      worker_command: '/b',
      watched_repos: ['a/b'],
      existing_pr: 'ignore',
      attic_retention_days: 30,
    })
    expect(warned.kind === 'valid' ? warned.loaded.warnings : []).toMatchObject([
      { path: 'existing_pr', found: '"ignore"', wanted: expect.stringContaining('nothing yet') },
    ])
  })

  test('a backend that is not there stops the load', () => {
    expect(paths({ state_backend: 'sqlite' })).toEqual(['state_backend'])
  })
})

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

describe('which servers get the token', () => {
  const baseOf = (api_base: string): unknown => {
    const inspection = rig.inspect({ worker_command: '/b', api_base })
    return inspection.kind === 'valid' ? inspection.loaded.config.apiBase : null
  }

  test.each([
    ['https://api.github.com', 'github.com', 'https://api.github.com', 'github.com'],
    ['https://api.github.com/', 'github.com', 'https://api.github.com', 'github.com'],
    [
      'https://ghe.example.com/api/v3',
      'enterprise',
      'https://ghe.example.com/api/v3',
      'ghe.example.com',
    ],
    [
      'https://GHE.example.com/api/v3/',
      'enterprise',
      'https://ghe.example.com/api/v3',
      'ghe.example.com',
    ],
    [
      'https://ghe.example.com:8443/api/v3/x',
      'enterprise',
      'https://ghe.example.com:8443/api/v3/x',
      'ghe.example.com:8443',
    ],
    ['http://127.0.0.1:8080', 'loopback', 'http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://localhost:1/any/path/', 'loopback', 'http://localhost:1/any/path', 'localhost:1'],
    ['http://[::1]:8080/api/v3', 'loopback', 'http://[::1]:8080/api/v3', '[::1]:8080'],
  ])('%s is accepted', (text, kind, url, gitServer) => {
    expect(baseOf(text)).toEqual({ kind, url, gitServer })
  })

  test.each([
    'http://api.github.com',
    'http://ghe.example.com/api/v3',
    'https://api.github.com/api/v3',
    'https://api.github.com:8443',
    'https://bitbucket.example.com',
    'https://proxy.example.com/github',
    'https://ghe.example.com/api/v3evil',
    'https://ghe.example.com/x/../api/v4',
    'http://localhost.example.com:80/',
    'http://127.0.0.2:80/',
    'ftp://127.0.0.1/',
    'not a url',
    '',
  ])('%j is refused, and the text is not repeated', (text) => {
    const inspection = rig.inspect({ worker_command: '/b', api_base: text })
    const [problem] = problemsOf(inspection)
    expect(problem?.path).toBe('api_base')
    expect(problem?.found).toBe('a value that is not shown')
  })

  test.each([
    'https://user:PLACE@ghe.example.com/api/v3',
    'https://ghe.example.com/api/v3?t=PLACE',
    'https://ghe.example.com/PLACE#PLACE',
    'PLACE',
  ])('a secret in it (%s) stands in no error', (text) => {
    const secret = 'very-secret-thing'
    const inspection = rig.inspect({
      worker_command: '/b',
      api_base: text.replaceAll('PLACE', secret),
    })
    expect(problemsOf(inspection)).toHaveLength(1)
    const fault = inspection.kind === 'invalid' ? inspection.fault : null
    expect(fault?.message).toContain('api_base')
    expect(JSON.stringify([problemsOf(inspection), fault, fault?.message])).not.toContain(secret)
  })
})
