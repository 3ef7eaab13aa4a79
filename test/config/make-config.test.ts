import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { LoadedConfig } from '../../daemon/config/load-config.ts'
import type { Config } from '../../daemon/config/make-config.ts'
import { type ConfigRig, makeConfigRig } from '../support/config-rig.ts'

let rig: ConfigRig
beforeEach(() => {
  rig = makeConfigRig()
})
afterEach(() => rig.remove())

describe('what the keys become', () => {
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
})
