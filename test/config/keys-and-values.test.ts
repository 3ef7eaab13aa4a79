import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { LoadedConfig } from '../../daemon/config/load-config.ts'
import type { Config } from '../../daemon/config/make-config.ts'
import { CONFIG_KEYS, CONFIG_SCHEMA } from '../../daemon/config/schema.ts'
import { type ConfigRig, makeConfigRig, problemsOf } from '../support/config-rig.ts'

describe('which values a key takes', () => {
  type KeySchema = Readonly<{
    type?: unknown
    enum?: readonly unknown[]
    minimum?: number
    maximum?: number
    pattern?: string
    default?: unknown
    description?: string
    properties?: Readonly<Record<string, KeySchema>>
  }>

  /** Every key there is, nested ones under their whole path. */
  function walk(prefix: string, keys: Readonly<Record<string, KeySchema>>): [string, KeySchema][] {
    return Object.entries(keys).flatMap(([key, schema]): [string, KeySchema][] => {
      const path = `${prefix}${key}`
      return [[path, schema], ...walk(`${path}.`, schema.properties ?? {})]
    })
  }

  const ALL_KEYS = walk('', CONFIG_SCHEMA.properties)
  const TOP_KEYS = ALL_KEYS.filter(([path]) => !path.includes('.'))

  function wrongTypeOf(schema: KeySchema): unknown {
    const types = Array.isArray(schema.type) ? schema.type : [schema.type]
    return types.includes('string') || types.includes('array') ? 7 : 'wrong'
  }

  /** A document with one value at a path. */
  function documentWith(path: string, value: unknown): Record<string, unknown> {
    const [first = '', ...rest] = path.split('.')
    return { [first]: rest.length === 0 ? value : documentWith(rest.join('.'), value) }
  }

  let rig: ConfigRig
  beforeEach(() => {
    rig = makeConfigRig()
  })
  afterEach(() => rig.remove())

  test('every key is described and has a default, unless the machine or the operator decides', () => {
    const open = ALL_KEYS.filter(([, schema]) => schema.default === undefined).map(([path]) => path)
    expect(ALL_KEYS.filter(([, schema]) => (schema.description ?? '') === '')).toEqual([])
    expect(open).toEqual([
      'max_issues_per_tick',
      'worker_command',
      'state_dir',
      'log_path',
      'repo_storage_root',
      'sandbox',
      'sandbox.image',
    ])
  })

  test.each(ALL_KEYS)('%s: a value of another type is reported', (path, schema) => {
    const problems = problemsOf(rig.inspect(documentWith(path, wrongTypeOf(schema))))
    const mine = problems.filter((problem) => problem.path === path)
    expect(mine).toHaveLength(1)
    for (const text of Object.values(mine[0] ?? {})) expect(text).not.toBe('')
    expect(mine[0]?.wanted).toMatch(
      /text|number|true or false|list|mapping|one of|label|name|none or/,
    )
  })

  test('wrong values of all keys are reported together, once each', () => {
    const document = Object.fromEntries(TOP_KEYS.map(([key, schema]) => [key, wrongTypeOf(schema)]))
    const inspection = rig.inspect(document)
    const paths = problemsOf(inspection).map(({ path }) => path)
    expect([...paths].sort()).toEqual([...CONFIG_KEYS].sort())
    expect(inspection.kind === 'invalid' && inspection.fault.code).toBe('config/invalid')
    expect(inspection.kind === 'invalid' && inspection.fault.details['count']).toBe(paths.length)
  })

  const bounded = ALL_KEYS.filter(([, schema]) => schema.minimum !== undefined)
  test.each(bounded)(
    '%s: below its least and above its greatest value is reported',
    (path, schema) => {
      for (const value of [(schema.minimum ?? 0) - 1, (schema.maximum ?? 0) + 1]) {
        const problems = problemsOf(rig.inspect(documentWith(path, value)))
        const mine = problems.find((problem) => problem.path === path)
        expect(mine?.found).toBe(String(value))
        expect(mine?.wanted).toMatch(/^at (least|most) /)
      }
    },
  )

  const enumerated = ALL_KEYS.filter(([, schema]) => schema.enum !== undefined)
  test.each(enumerated)('%s: another word is reported', (path) => {
    const problems = problemsOf(rig.inspect(documentWith(path, 'something-else')))
    const mine = problems.find((problem) => problem.path === path)
    expect(mine?.found).toBe('"something-else"')
  })

  test.each(TOP_KEYS)(
    '%s: a line without a value is reported, unless nothing is a value',
    (key) => {
      const problems = problemsOf(rig.inspect({ worker_command: '/bridge', [key]: null }))
      const mine = problems.filter((problem) => problem.path === key)
      if (key === 'github_token') return expect(mine).toEqual([])
      expect(mine).toHaveLength(1)
      expect(mine[0]?.found).toBe('nothing')
    },
  )

  test('a problem says how to get the default back', () => {
    const [problem] = problemsOf(rig.inspect({ worker_command: '/b', poll_interval_seconds: '2m' }))
    expect(problem).toEqual({
      path: 'poll_interval_seconds',
      found: '"2m"',
      wanted: 'a whole number',
      fix: 'Correct it, or remove the line to use the default (120).',
    })
  })

  test('one wrong entry of a list does not hide the others', () => {
    const watched_repos = [5, 'octocat/hello', 'not a repository', 6, 'Octocat/Hello']
    const problems = problemsOf(rig.inspect({ worker_command: '/b', watched_repos }))
    expect(problems.map(({ path }) => path).sort()).toEqual([
      'watched_repos[0]',
      'watched_repos[2]',
      'watched_repos[3]',
      'watched_repos[4]',
    ])
  })
})

describe('are generated files up to date', () => {
  const ROOT = join(import.meta.dirname, '..', '..')

  function generate(...options: string[]): { code: number | null; output: string } {
    const done = spawnSync(process.execPath, ['scripts/generate.mjs', ...options], {
      cwd: ROOT,
      encoding: 'utf8',
      timeout: 60_000,
    })
    return { code: done.status, output: done.stdout + done.stderr }
  }

  test('what is committed is what the sources give', () => {
    expect(generate('--check')).toEqual({ code: 0, output: '' })
  })

  test('a stale or missing file is named, and written on demand, twice the same', () => {
    const root = mkdtempSync(join(tmpdir(), 'generated-'))
    try {
      const before = generate('--check', '--root', root)
      expect(before.code).toBe(1)
      expect(before.output).toContain('docs/configuration.md')
      expect(generate('--root', root).code).toBe(0)
      expect(generate('--check', '--root', root)).toEqual({ code: 0, output: '' })
      const page = 'docs/configuration.md'
      expect(readFileSync(join(root, page), 'utf8')).toBe(readFileSync(join(ROOT, page), 'utf8'))
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  test('the page shows every key', () => {
    const page = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')
    for (const key of CONFIG_KEYS) expect(page).toMatch(new RegExp(`\\| \`${key}[\`.]`))
  })
})

describe('what the keys become', () => {
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

  const DEFAULTS = (home: string): Config => ({
    watchedRepos: [{ owner: 'octocat', name: 'hello' }],
    discover: false,
    discoveryMaxPages: 20,
    triggerLabels: { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' },
    pollIntervalSeconds: 120,
    workerParallelism: 1,
    maxRunsPerRepo: 1,
    maxIssuesPerTick: 4,
    existingPr: 'skip',
    githubToken: null,
    apiBase: { kind: 'github.com', url: 'https://api.github.com', gitServer: 'github.com' },
    httpTimeoutSeconds: 60,
    workerCommand: ['/bridge'],
    workerInstruction: '',
    workerTimeoutSeconds: 3600,
    workerCompletionGraceSeconds: 60,
    workerStallSeconds: 0,
    drainTimeoutSeconds: 30,
    maxRetriesPerIssue: 3,
    retryBackoffSeconds: 300,
    transcriptMaxBytes: 10_485_760,
    workerEnvAllowlist: [],
    feedbackAuthorAllowlist: [],
    commentIgnorePatterns: [],
    executorMode: 'trusted_host',
    dryRun: false,
    commentForbiddenStrings: [
      'caduceus',
      'opencode',
      'gentle-ai',
      'engram',
      'hermes',
      'worker-bridge',
    ],
    closeIssue: 'finalize',
    removeLabelOnCompletion: true,
    publishSettleSeconds: 120,
    protectedPaths: ['.github/workflows/**'],
    maxChangedFiles: 5000,
    maxDiffBytes: 50 * 1024 * 1024,
    maxFileBytes: 50 * 1024 * 1024,
    stateDir: `${home}/.hermes/caduceus-state`,
    workdirBase: `${home}/projects`,
    logPath: `${home}/.hermes/caduceus-state/processor.log`,
    repoStorageRoot: `${home}/.hermes/caduceus-state/repos`,
    stateBackend: 'json',
    gitTimeoutSeconds: 300,
    runRetentionDays: 30,
    worktreeGcOlderThanDays: 1,
    worktreeGcDisabled: false,
    archiveOnRetry: false,
    atticRetentionDays: 30,
    circuitFailureThreshold: 3,
    circuitBackoffSeconds: [30, 120, 600],
    circuitOpenIntervalSeconds: 1800,
    circuitMaxDegradedSeconds: 86_400,
  })

  test('a standalone configuration of watched_repos and worker_command is complete', () => {
    const { config, warnings } = loaded({
      watched_repos: ['octocat/hello'],
      worker_command: '/bridge',
    })
    expect(config).toEqual(DEFAULTS(rig.home))
    expect(warnings).toEqual([])
  })

  test('under Hermes watched_repos alone is enough, and the paths are Hermes’s', () => {
    const { config } = loaded({ watched_repos: ['octocat/hello'] }, { HERMES_HOME: '/srv/h e' })
    expect(config.workerCommand).toEqual(['/srv/h e/caduceus/worker-bridge.py'])
    expect(config.stateDir).toBe('/srv/h e/caduceus-state')
    expect(config.logPath).toBe('/srv/h e/caduceus-state/processor.log')
    expect(config.workdirBase).toBe(rig.path('projects'))
  })

  test('each key arrives under its own name', () => {
    const { config } = loaded({
      watched_repos: ['A/b'],
      discover: true,
      discovery_max_pages: 101,
      ticket_label_code: 'fix',
      ticket_label_investigation: 'look',
      poll_interval_seconds: 102,
      worker_parallelism: 103,
      max_runs_per_repo: 104,
      max_issues_per_tick: 0,
      existing_pr: 'ignore',
      github_token: 'secret-value',
      api_base: 'https://ghe.example.com/api/v3/',
      http_timeout_seconds: 105,
      worker_command: ['python3', '/b.py', ''],
      worker_instruction: 'Be brief.',
      worker_timeout_seconds: 106,
      worker_completion_grace_seconds: 0,
      worker_stall_seconds: 107,
      drain_timeout_seconds: 108,
      max_retries_per_issue: 109,
      retry_backoff_seconds: 110,
      transcript_max_bytes: 111,
      worker_env_allowlist: ['AWS_*'],
      feedback_author_allowlist: ['Octocat'],
      comment_ignore_patterns: [String.raw`\[bot\]$`],
      executor_mode: 'oci',
      dry_run: true,
      comment_forbidden_strings: ['x'],
      close_issue: 'never',
      remove_label_on_completion: false,
      publish_settle_seconds: 112,
      protected_paths: ['docs/**'],
      max_changed_files: 113,
      max_diff_bytes: 114,
      max_file_bytes: 115,
      state_dir: '/s',
      workdir_base: '/w',
      log_path: '/l',
      repo_storage_root: '/r',
      state_backend: 'json',
      git_timeout_seconds: 116,
      run_retention_days: 117,
      worktree_gc_older_than_days: 118,
      worktree_gc_disabled: true,
      archive_on_retry: true,
      attic_retention_days: 119,
      circuit_failure_threshold: 120,
      circuit_backoff_seconds: [121],
      circuit_open_interval_seconds: 122,
      circuit_max_degraded_seconds: 123,
      sandbox: { image: `worker@sha256:${'0'.repeat(64)}` },
    })
    expect(config).toEqual({
      watchedRepos: [{ owner: 'A', name: 'b' }],
      discover: true,
      discoveryMaxPages: 101,
      triggerLabels: { code: 'fix', investigation: 'look' },
      pollIntervalSeconds: 102,
      workerParallelism: 103,
      maxRunsPerRepo: 104,
      maxIssuesPerTick: 0,
      existingPr: 'ignore',
      githubToken: 'secret-value',
      apiBase: {
        kind: 'enterprise',
        url: 'https://ghe.example.com/api/v3',
        gitServer: 'ghe.example.com',
      },
      httpTimeoutSeconds: 105,
      workerCommand: ['python3', '/b.py', ''],
      workerInstruction: 'Be brief.',
      workerTimeoutSeconds: 106,
      workerCompletionGraceSeconds: 0,
      workerStallSeconds: 107,
      drainTimeoutSeconds: 108,
      maxRetriesPerIssue: 109,
      retryBackoffSeconds: 110,
      transcriptMaxBytes: 111,
      workerEnvAllowlist: ['AWS_*'],
      feedbackAuthorAllowlist: ['Octocat'],
      commentIgnorePatterns: [/\[bot\]$/u],
      executorMode: 'oci',
      dryRun: true,
      commentForbiddenStrings: ['x'],
      closeIssue: 'never',
      removeLabelOnCompletion: false,
      publishSettleSeconds: 112,
      protectedPaths: ['docs/**'],
      maxChangedFiles: 113,
      maxDiffBytes: 114,
      maxFileBytes: 115,
      stateDir: '/s',
      workdirBase: '/w',
      logPath: '/l',
      repoStorageRoot: '/r',
      stateBackend: 'json',
      gitTimeoutSeconds: 116,
      runRetentionDays: 117,
      worktreeGcOlderThanDays: 118,
      worktreeGcDisabled: true,
      archiveOnRetry: true,
      atticRetentionDays: 119,
      circuitFailureThreshold: 120,
      circuitBackoffSeconds: [121],
      circuitOpenIntervalSeconds: 122,
      circuitMaxDegradedSeconds: 123,
    })
  })

  test('an empty list is empty: it replaces the default and is warned about', () => {
    const { config, warnings } = loaded({
      worker_command: '/b',
      watched_repos: [],
      comment_forbidden_strings: [],
      protected_paths: [],
    })
    expect(config.commentForbiddenStrings).toEqual([])
    expect(config.protectedPaths).toEqual([])
    const warned = warnings.map(({ path }) => path)
    expect(warned).toEqual(['watched_repos', 'comment_forbidden_strings'])
  })

  test('discover makes an empty watched_repos meaningful', () => {
    expect(loaded({ worker_command: '/b', discover: true }).warnings).toEqual([])
  })

  test('max_issues_per_tick follows worker_parallelism', () => {
    expect(loaded({ worker_command: '/b', worker_parallelism: 3 }).config.maxIssuesPerTick).toBe(12)
  })

  test('trusted_host needs no acknowledgement and no sandbox', () => {
    expect(
      loaded({ worker_command: '/b', executor_mode: 'trusted_host' }).config.executorMode,
    ).toBe('trusted_host')
  })

  test('every key is shown with its value in force and where it comes from', () => {
    const secret = 'a-secret-value'
    const { values } = loaded(
      { worker_command: '/b', github_token: secret, state_dir: '~/s', watched_repos: [] },
      { CADUCEUS_DRY_RUN: '1' },
    )
    expect(values.map(({ key }) => key)).toEqual(CONFIG_KEYS.filter((key) => key !== 'sandbox'))
    const shown = Object.fromEntries(values.map(({ key, value, origin }) => [key, [value, origin]]))
    expect(shown['github_token']).toEqual(['<redacted>', 'file'])
    expect(shown['state_dir']).toEqual([rig.path('s'), 'file'])
    expect(shown['log_path']).toEqual([rig.path('s', 'processor.log'), 'default'])
    expect(shown['watched_repos']).toEqual([[], 'file'])
    expect(shown['dry_run']).toEqual([true, 'environment'])
    expect(shown['poll_interval_seconds']).toEqual([120, 'default'])
    expect(JSON.stringify(values)).not.toContain(secret)
  })
})
