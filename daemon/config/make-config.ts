import { parseApiBase } from './api-base.ts'
import type { Config } from './config.ts'
import { readDryRun } from './dry-run.ts'
import { compileIgnorePatterns } from './ignore-patterns.ts'
import type { Parsed } from './problem.ts'
import { type Place, resolveLocations } from './resolve-path.ts'
import type { ConfigFile, ConfigKey } from './schema.ts'
import { parseWatchedRepositories } from './watched-repositories.ts'
import { parseWorkerCommand } from './worker-command.ts'

/** Tasks one tick may begin for each worker that can run. */
const ISSUES_PER_WORKER = 4

/** The keys in the program's words, with everything wrong about their values. */
export function makeConfig(
  file: ConfigFile,
  place: Place,
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
