import type { RepositoryName } from '../core/issue-key.ts'
import type { TriggerLabels } from '../core/labels.ts'
import { type ApiBase, parseApiBase } from './api-base.ts'
import { type CamelCased, camelCased } from './camel-case.ts'
import { parseIgnorePatterns } from './parse-ignore-patterns.ts'
import { parseWatchedRepositories } from './parse-watched-repositories.ts'
import { type Argv, parseWorkerCommand } from './parse-worker-command.ts'
import type { Parsed } from './problem.ts'
import { readDryRun } from './read-dry-run.ts'
import { type ConfigContext, type Locations, resolveLocations } from './resolve-locations.ts'
import type { ConfigFile } from './schema.ts'

/**
 * The configuration as the program uses it: complete, checked, paths absolute, lists parsed. Most fields are keys
 * taken over as they are, under their names in camel case (the schema describes them); what became of the others
 * is said here.
 */
export type Config = CamelCased<Omit<ConfigFile, MadeKey>> &
  Locations &
  Readonly<{
    watchedRepos: readonly RepositoryName[]
    /** ticket_label_code and ticket_label_investigation. */
    triggerLabels: TriggerLabels
    /** 0 = no limit. */
    maxIssuesPerTick: number
    apiBase: ApiBase
    workerCommand: Argv
    commentIgnorePatterns: readonly RegExp[]
    /** After CADUCEUS_DRY_RUN. */
    dryRun: boolean
  }>

/** Keys of which a field is made, or none. */
type MadeKey = Exclude<keyof ConfigFile, keyof ReturnType<typeof withoutMadeKeys>>

/** Issues of which one tick may start runs, for each worker that can run. */
const ISSUES_PER_WORKER = 4

/** The keys in the program's words, with everything wrong about their values. */
export function makeConfig(
  file: ConfigFile,
  context: ConfigContext,
  env: Readonly<Record<string, string>>,
): Parsed<Config> {
  const locations = resolveLocations(file, context)
  const watchedRepos = parseWatchedRepositories(file.watched_repos)
  const apiBase = parseApiBase(file.api_base)
  const workerCommand = parseWorkerCommand(file.worker_command, context)
  const ignorePatterns = parseIgnorePatterns(file.comment_ignore_patterns)
  const dryRun = readDryRun(env, file.dry_run)
  const value = {
    ...camelCased(withoutMadeKeys(file)),
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

function withoutMadeKeys(file: ConfigFile) {
  const {
    state_dir: _stateDir,
    workdir_base: _workdirBase,
    log_path: _logPath,
    repo_storage_root: _repoStorageRoot,
    watched_repos: _watchedRepos,
    ticket_label_code: _code,
    ticket_label_investigation: _investigation,
    max_issues_per_tick: _maxIssues,
    api_base: _apiBase,
    worker_command: _workerCommand,
    comment_ignore_patterns: _patterns,
    dry_run: _dryRun,
    sandbox: _sandbox,
    ...plain
  } = file
  return plain
}
