import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { loadConfig } from '../../daemon/config/load-config.ts'
import { describeProblem } from '../../daemon/config/problem.ts'
import { CONFIG_KEYS } from '../../daemon/config/schema.ts'
import {
  CONFIG_FILES,
  type ConfigRig,
  makeConfigRig,
  problemsOf,
  warningsOf,
} from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('what the environment overrides', () => {
  test.each([
    ['1', true],
    ['TRUE', true],
    ['yes', true],
    ['0', false],
    ['False', false],
    ['NO', false],
  ])(
    'CADUCEUS_DRY_RUN=%s sets dry_run to %s, whatever the file says',
    (CADUCEUS_DRY_RUN, wanted) => {
      for (const dry_run of [true, false]) {
        const inspection = rig.inspect({ worker_command: '/b', dry_run }, { CADUCEUS_DRY_RUN })
        expect(inspection.kind === 'valid' && inspection.loaded.config.dryRun).toBe(wanted)
      }
    },
  )

  test('CADUCEUS_DRY_RUN=maybe is reported together with everything else', () => {
    for (const CADUCEUS_DRY_RUN of ['maybe', '', 'constructor']) {
      const inspection = rig.inspect({ watched_repos: ['x'] }, { CADUCEUS_DRY_RUN })
      expect(problemsOf(inspection).map(({ path }) => path)).toEqual([
        'watched_repos[0]',
        'worker_command',
        'CADUCEUS_DRY_RUN',
      ])
    }
  })

  test('no other key is overridden', () => {
    const env = { CADUCEUS_POLL_INTERVAL_SECONDS: '5', CADUCEUS_STATE_DIR: '/elsewhere' }
    const inspection = rig.inspect({ worker_command: '/b' }, env)
    const config = inspection.kind === 'valid' ? inspection.loaded.config : null
    expect(config?.pollIntervalSeconds).toBe(120)
    expect(config?.stateDir).toBe(rig.path('.hermes', 'caduceus-state'))
  })
})

describe('unknown keys', () => {
  test.each([
    ['watched_repo', 'watched_repos'],
    ['watchedRepos', 'watched_repos'],
    ['worker-command', 'worker_command'],
    ['wroker_timeout_secs', 'worker_timeout_seconds'],
  ])('%s at the top is ignored with a warning that names %s', (key, nearest) => {
    const inspection = rig.inspect({ watched_repos: ['a/b'], worker_command: '/b', [key]: [] })
    expect(inspection.kind).toBe('valid')
    const [warning] = warningsOf(inspection)
    expect(warning?.path).toBe(key)
    expect(warning?.wanted).toBe(nearest)
    expect(warning?.fix).toContain('ignored')
  })

  test('a key like no other is warned about without a guess, its value unseen', () => {
    const token = ['gh', 'p_', 'a'.repeat(36)].join('')
    const inspection = rig.inspect({
      watched_repos: ['a/b'],
      worker_command: '/b',
      xylophone: token,
    })
    expect(warningsOf(inspection)[0]?.wanted).toContain('docs/configuration.md')
    expect(JSON.stringify(inspection)).not.toContain(token)
  })

  test.each([
    'stale_run_hours',
    'scheduler_lease_ttl_seconds',
    'scheduler_anything',
    'worker_lease_ttl_seconds',
    'backpressure_budget_ms',
    'reduced_containment_acknowledged',
  ])('%s was dropped and is warned about as such', (key) => {
    const inspection = rig.inspect({ watched_repos: ['a/b'], worker_command: '/b', [key]: 1 })
    expect(inspection.kind).toBe('valid')
    expect(warningsOf(inspection)[0]?.found).toBe('a key that was dropped')
  })

  test.each(['oci_cli', 'oci_whatever', 'network_profiles', 'secret_grants', 'upgrade_choice'])(
    '%s was removed and is an error',
    (key) => {
      const problems = problemsOf(rig.inspect({ worker_command: '/b', [key]: null }))
      expect(problems.map(({ path }) => path)).toEqual([key])
    },
  )

  test('inside sandbox, at any depth, it is an error that names the nearest', () => {
    const sandbox = { images: 'x', resources: { cpu: 1 } }
    const problems = problemsOf(rig.inspect({ worker_command: '/b', sandbox }))
    expect(problems.map(({ path, wanted }) => [path, wanted])).toEqual([
      ['sandbox.images', 'image'],
      ['sandbox.resources.cpu', 'cpus'],
    ])
  })

  test('names that objects have anyway are unknown keys like others', () => {
    const text =
      'worker_command: /b\nwatched_repos: [a/b]\n__proto__: {dry_run: true}\nconstructor: 1\ntoString: 2\n'
    const env = rig.env({ CADUCEUS_CONFIG: rig.write('own.yaml', text) })
    const loaded = loadConfig(CONFIG_FILES, env)
    expect(loaded.config.dryRun).toBe(false)
    expect(loaded.warnings).toHaveLength(3)
  })
})

describe('what any document ends in', () => {
  const SANDBOX = fc.dictionary(
    fc.constantFrom('image', 'resources', 'pass_env', 'network', 'other', '__proto__'),
    fc.jsonValue({ maxDepth: 2 }),
  )
  const VALUE = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(fc.oneof(fc.string(), fc.integer())),
    fc.integer(),
    fc.string({ unit: 'binary' }),
  )
  const DOCUMENT = fc
    .tuple(fc.dictionary(fc.constantFrom(...CONFIG_KEYS, 'odd', 'oci_x'), VALUE), SANDBOX)
    .map(([keys, sandbox]) => ({ ...keys, sandbox }))

  test('a configuration, or problems that can be read, each place once; never a crash', () => {
    const rig = makeConfigRig()
    try {
      fc.assert(
        fc.property(DOCUMENT, (document) => {
          const inspection = rig.inspect(document)
          const problems = problemsOf(inspection)
          if (inspection.kind === 'invalid') {
            expect(inspection.fault.code).toBe('config/invalid')
            expect(problems).not.toEqual([])
          }
          expect(new Set(problems.map(({ path }) => path)).size).toBe(problems.length)
          for (const problem of [...problems, ...warningsOf(inspection)]) {
            expect(describeProblem(problem)).toMatch(/^[^\0]+: found .+; wanted: .+\. .+\.$/)
          }
        }),
        { numRuns: 500 },
      )
    } finally {
      rig.remove()
    }
  })
})

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

describe('what is not part of this version', () => {
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
