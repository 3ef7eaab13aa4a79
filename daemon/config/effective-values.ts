import { redact } from '../core/redaction.ts'
import type { Config } from './make-config.ts'
import { isDryRunOverridden } from './read-dry-run.ts'
import { readToken } from './resolve-token.ts'
import { CONFIG_KEYS, type ConfigFile } from './schema.ts'

/** One key as it is in force, and where its value comes from. */
export type EffectiveValue = Readonly<{
  key: string
  value: unknown
  origin: 'file' | 'default' | 'environment'
}>

/**
 * All keys in the order of the documentation, with paths absolute and without secrets.
 * @param document the configuration as written, which says whether a key was given
 */
export function effectiveValues(
  document: unknown,
  file: ConfigFile,
  config: Config,
  env: Readonly<Record<string, string>>,
): readonly EffectiveValue[] {
  const [program, ...rest] = config.workerCommand
  const values: Readonly<Record<string, unknown>> = {
    ...file,
    state_dir: config.stateDir,
    workdir_base: config.workdirBase,
    log_path: config.logPath,
    repo_storage_root: config.repoStorageRoot,
    max_issues_per_tick: config.maxIssuesPerTick,
    worker_command: rest.length === 0 ? program : config.workerCommand,
    github_token: readToken(file.github_token ?? '').kind === 'token' ? '<redacted>' : null,
    dry_run: config.dryRun,
  }
  const origin = (key: string): EffectiveValue['origin'] => {
    if (key === 'dry_run' && isDryRunOverridden(env)) return 'environment'
    return isGiven(document, key) ? 'file' : 'default'
  }
  return CONFIG_KEYS.filter((key) => values[key] !== undefined).map((key) => ({
    key,
    value: withoutSecrets(values[key]),
    origin: origin(key),
  }))
}

function isGiven(document: unknown, key: string): boolean {
  return typeof document === 'object' && document !== null && Object.hasOwn(document, key)
}

/** A token may have been pasted into any text, an argument of the worker for example. */
function withoutSecrets(value: unknown): unknown {
  if (typeof value === 'string') return redact(value)
  return Array.isArray(value) ? value.map(withoutSecrets) : value
}
