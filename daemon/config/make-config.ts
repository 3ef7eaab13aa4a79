// The configuration as the program uses it, and how it is made of the keys.

import { describeThrown } from '../core/fault.ts'
import { parseRepositoryName, type RepositoryName } from '../core/issue-key.ts'
import type { TriggerLabels } from '../core/labels.ts'
import { type ApiBase, parseApiBase } from './api-base.ts'
import { type Parsed, type Problem, showFound } from './problem.ts'
import {
  type Argv,
  type ConfigContext,
  type Locations,
  parseWorkerCommand,
  resolveLocations,
} from './resolve-path.ts'
import type { ConfigFile, ConfigKey } from './schema.ts'

/**
 * The configuration as the program uses it: complete, checked, paths absolute, lists parsed. A field
 * carries the name of its key (schema.ts describes it); what a key became is said here.
 */
export type Config = Locations &
  Readonly<{
    watchedRepos: readonly RepositoryName[]
    discover: boolean
    discoveryMaxPages: number
    /** ticket_label_code and ticket_label_investigation. */
    triggerLabels: TriggerLabels
    pollIntervalSeconds: number
    workerParallelism: number
    /** 0 = no limit. */
    maxRunsPerRepo: number
    /** 0 = no limit. */
    maxIssuesPerTick: number
    existingPr: ConfigFile['existing_pr']

    /** Secret, and only one of the places a token can come from: use `resolveToken`. */
    githubToken: string | null
    apiBase: ApiBase
    httpTimeoutSeconds: number

    workerCommand: Argv
    workerInstruction: string
    workerTimeoutSeconds: number
    /** 0 = never. */
    workerCompletionGraceSeconds: number
    /** 0 = never. */
    workerStallSeconds: number
    drainTimeoutSeconds: number
    /** All attempts, the first included. */
    maxRetriesPerIssue: number
    retryBackoffSeconds: number
    transcriptMaxBytes: number
    workerEnvAllowlist: readonly string[]
    feedbackAuthorAllowlist: readonly string[]
    commentIgnorePatterns: readonly RegExp[]
    executorMode: ConfigFile['executor_mode']

    /** After CADUCEUS_DRY_RUN. */
    dryRun: boolean
    commentForbiddenStrings: readonly string[]
    closeIssue: ConfigFile['close_issue']
    removeLabelOnCompletion: boolean
    publishSettleSeconds: number
    protectedPaths: readonly string[]
    maxChangedFiles: number
    maxDiffBytes: number
    maxFileBytes: number

    stateBackend: ConfigFile['state_backend']
    gitTimeoutSeconds: number
    runRetentionDays: number
    worktreeGcOlderThanDays: number
    worktreeGcDisabled: boolean
    archiveOnRetry: boolean
    atticRetentionDays: number

    circuitFailureThreshold: number
    circuitBackoffSeconds: readonly number[]
    circuitOpenIntervalSeconds: number
    circuitMaxDegradedSeconds: number
  }>

/** Tasks one tick may begin for each worker that can run. */
const ISSUES_PER_WORKER = 4

/** The keys in the program's words, with everything wrong about their values. */
export function makeConfig(
  file: ConfigFile,
  place: ConfigContext,
  env: Readonly<Record<string, string>>,
): Parsed<Config> {
  const locations = resolveLocations(file, place)
  const watchedRepos = parseWatchedRepositories(file.watched_repos)
  const apiBase = parseApiBase(file.api_base)
  const workerCommand = parseWorkerCommand(file.worker_command, place)
  const ignorePatterns = compileIgnorePatterns(file.comment_ignore_patterns)
  const dryRun = readDryRun(env, file.dry_run)
  const value = {
    ...plainValues(file),
    ...locations.value,
    watchedRepos: watchedRepos.value,
    triggerLabels: { code: file.ticket_label_code, investigation: file.ticket_label_investigation },
    maxIssuesPerTick: file.max_issues_per_tick ?? file.worker_parallelism * ISSUES_PER_WORKER,
    apiBase: apiBase.value,
    workerCommand: workerCommand.value,
    commentIgnorePatterns: ignorePatterns.value,
    dryRun: dryRun.value,
  }
  const parts = [locations, watchedRepos, apiBase, workerCommand, ignorePatterns, dryRun]
  return { value, problems: parts.flatMap(({ problems }) => problems) }
}

/** Keys that `makeConfig` does not simply take over. */
type MadeKey =
  | 'state_dir'
  | 'workdir_base'
  | 'log_path'
  | 'repo_storage_root'
  | 'watched_repos'
  | 'ticket_label_code'
  | 'ticket_label_investigation'
  | 'max_issues_per_tick'
  | 'api_base'
  | 'worker_command'
  | 'comment_ignore_patterns'
  | 'dry_run'
  | 'sandbox'

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

/** Complete by its type: a key of the schema that is neither made nor listed here does not compile. */
type PlainValues = {
  [Key in Exclude<ConfigKey, MadeKey> as CamelCase<Key>]: ConfigFile[Key]
}

function plainValues(file: ConfigFile): PlainValues {
  return {
    discover: file.discover,
    discoveryMaxPages: file.discovery_max_pages,
    pollIntervalSeconds: file.poll_interval_seconds,
    workerParallelism: file.worker_parallelism,
    maxRunsPerRepo: file.max_runs_per_repo,
    existingPr: file.existing_pr,
    githubToken: file.github_token,
    httpTimeoutSeconds: file.http_timeout_seconds,
    workerInstruction: file.worker_instruction,
    workerTimeoutSeconds: file.worker_timeout_seconds,
    workerCompletionGraceSeconds: file.worker_completion_grace_seconds,
    workerStallSeconds: file.worker_stall_seconds,
    drainTimeoutSeconds: file.drain_timeout_seconds,
    maxRetriesPerIssue: file.max_retries_per_issue,
    retryBackoffSeconds: file.retry_backoff_seconds,
    transcriptMaxBytes: file.transcript_max_bytes,
    workerEnvAllowlist: file.worker_env_allowlist,
    feedbackAuthorAllowlist: file.feedback_author_allowlist,
    executorMode: file.executor_mode,
    commentForbiddenStrings: file.comment_forbidden_strings,
    closeIssue: file.close_issue,
    removeLabelOnCompletion: file.remove_label_on_completion,
    publishSettleSeconds: file.publish_settle_seconds,
    protectedPaths: file.protected_paths,
    maxChangedFiles: file.max_changed_files,
    maxDiffBytes: file.max_diff_bytes,
    maxFileBytes: file.max_file_bytes,
    stateBackend: file.state_backend,
    gitTimeoutSeconds: file.git_timeout_seconds,
    runRetentionDays: file.run_retention_days,
    worktreeGcOlderThanDays: file.worktree_gc_older_than_days,
    worktreeGcDisabled: file.worktree_gc_disabled,
    archiveOnRetry: file.archive_on_retry,
    atticRetentionDays: file.attic_retention_days,
    circuitFailureThreshold: file.circuit_failure_threshold,
    circuitBackoffSeconds: file.circuit_backoff_seconds,
    circuitOpenIntervalSeconds: file.circuit_open_interval_seconds,
    circuitMaxDegradedSeconds: file.circuit_max_degraded_seconds,
  }
}

const REPOSITORIES_KEY = 'watched_repos'

/** The watched repositories as names. */
function parseWatchedRepositories(texts: readonly string[]): Parsed<readonly RepositoryName[]> {
  const names = texts.map((text) => parseRepositoryName(text))
  return {
    value: names.filter((name) => name !== null),
    problems: texts.flatMap((text, index) =>
      names[index] === null
        ? [
            {
              path: `${REPOSITORIES_KEY}[${index}]`,
              found: showFound(REPOSITORIES_KEY, text),
              wanted: 'owner/name, as GitHub writes it',
              fix: 'Write owner/name, without a server and without .git.',
            },
          ]
        : [],
    ),
  }
}

const PATTERNS_KEY = 'comment_ignore_patterns'

/** Flags at the beginning of a pattern, as other dialects write them: (?i), (?im), … */
const INLINE_FLAGS = /^\(\?([ims]+)\)/

/**
 * Patterns for the login of a comment's author, compiled. They distinguish upper and lower case unless
 * `(?i)` stands at the beginning (R§2.8).
 */
function compileIgnorePatterns(patterns: readonly string[]): Parsed<readonly RegExp[]> {
  const compiled = patterns.map(compile)
  return {
    value: compiled.flatMap(({ expression }) => (expression === null ? [] : [expression])),
    problems: compiled.flatMap(({ problem }) => (problem === null ? [] : [problem])),
  }
}

function compile(
  pattern: string,
  index: number,
): { expression: RegExp | null; problem: Problem | null } {
  const flags = INLINE_FLAGS.exec(pattern)
  const source = pattern.slice(flags?.[0].length ?? 0)
  try {
    const expression = new RegExp(source, `u${[...new Set(flags?.[1])].join('')}`)
    return { expression, problem: null }
  } catch (error) {
    const problem = {
      path: `${PATTERNS_KEY}[${index}]`,
      found: showFound(PATTERNS_KEY, pattern),
      wanted: `a regular expression (${describeThrown(error)})`,
      fix: 'Correct the expression.',
    }
    return { expression: null, problem }
  }
}

const VARIABLE = 'CADUCEUS_DRY_RUN'

const WORDS: Readonly<Record<string, boolean>> = {
  '1': true,
  true: true,
  yes: true,
  '0': false,
  false: false,
  no: false,
}

/** The one key an environment variable overrides, in both directions (R§2.4). */
function readDryRun(env: Readonly<Record<string, string>>, configured: boolean): Parsed<boolean> {
  const text = env[VARIABLE]
  if (text === undefined) return { value: configured, problems: [] }
  const value = new Map(Object.entries(WORDS)).get(text.toLowerCase())
  if (value !== undefined) return { value, problems: [] }
  const problem = {
    path: VARIABLE,
    found: text === '' ? 'an empty value' : JSON.stringify(text),
    wanted: `one of ${Object.keys(WORDS).join(', ')}`,
    fix: 'Correct or unset the variable.',
  }
  return { value: configured, problems: [problem] }
}

/** Whether the variable decides. */
export function isDryRunOverridden(env: Readonly<Record<string, string>>): boolean {
  return env[VARIABLE] !== undefined
}
