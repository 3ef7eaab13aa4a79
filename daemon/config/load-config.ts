import { describeThrown, type Fault, fault, isFault } from '../core/fault.ts'
import { redact } from '../core/redaction.ts'
import { checkDocument } from './check-document.ts'
import { type ConfigFiles, type ConfigSource, type FoundSource, findSource } from './find-source.ts'
import { type Config, isDryRunOverridden, makeConfig } from './make-config.ts'
import { describeProblem, type Problem } from './problem.ts'
import { readToken } from './resolve-token.ts'
import { ADVICE, RULES, type RuleContext, type RuleFacts } from './rules.ts'
import { CONFIG_KEYS, type ConfigFile } from './schema.ts'

type Environment = Readonly<Record<string, string>>

export type LoadedConfig = Readonly<{
  config: Config
  source: ConfigSource
  /** What is odd but does no harm: for `status`, `doctor` and the log. */
  warnings: readonly Problem[]
  /** Every key with its value in effect, secrets masked: for `config show`. */
  values: readonly EffectiveValue[]
}>

/** Either a configuration, or all that is wrong with it. */
export type ConfigInspection =
  | Readonly<{ kind: 'valid'; loaded: LoadedConfig }>
  | Readonly<{
      kind: 'invalid'
      /** What `loadConfig` throws. */
      fault: Fault
      /** Null when no configuration was found or could be read. */
      source: ConfigSource | null
      /** Empty unless the fault is config/invalid. */
      problems: readonly Problem[]
      warnings: readonly Problem[]
    }>

/**
 * The configuration in force (R§2.1). No token is looked for: see `resolveToken`.
 * Faults: config/not-found, config/unreadable, config/no-section, config/environment, and one
 * config/invalid that carries all problems.
 */
export function loadConfig(files: ConfigFiles, env: Environment): LoadedConfig {
  const inspection = inspectConfig(files, env)
  if (inspection.kind === 'invalid') throw inspection.fault
  return inspection.loaded
}

/** As `loadConfig`, with the faults of a configuration as values. */
export function inspectConfig(files: ConfigFiles, env: Environment): ConfigInspection {
  const found = asValue(() => findSource(files, env))
  if (isFault(found)) {
    return { kind: 'invalid', fault: found, source: null, problems: [], warnings: [] }
  }
  return inspectSource(files, env, found)
}

function inspectSource(
  files: ConfigFiles,
  env: Environment,
  { source, place, document }: FoundSource,
): ConfigInspection {
  const checked = checkDocument(document)
  const { file } = checked
  if (file === null) return invalid(source, checked.problems, checked.warnings)

  const made = makeConfig(file, place, env)
  const config = made.value
  const context = look(files, source, config, file)
  const ruled = Object.values(RULES).map((rule) => rule(config, context))
  const problems = [...checked.problems]
  for (const more of [made.problems, ...ruled]) problems.push(...withoutKnown(problems, more))
  const advice = Object.values(ADVICE).flatMap((rule) => rule(config, context))
  const warnings = [...checked.warnings, ...withoutKnown(problems, advice)]
  if (problems.length > 0) return invalid(source, problems, warnings)

  const values = effectiveValues(document, file, config, env)
  return { kind: 'valid', loaded: { config, source, warnings, values } }
}

function invalid(
  source: ConfigSource,
  problems: readonly Problem[],
  warnings: readonly Problem[],
): ConfigInspection {
  const details = {
    path: source.path,
    count: problems.length,
    problems: problems.map(describeProblem).join(' '),
  }
  return { kind: 'invalid', fault: fault('config/invalid', details), source, problems, warnings }
}

/** What is left when a value already reported, or a part or the whole of one, is not reported again. */
function withoutKnown(known: readonly Problem[], more: readonly Problem[]): readonly Problem[] {
  return more.filter(({ path }) => !known.some((one) => isWithin(path, one.path)))
}

function isWithin(path: string, whole: string): boolean {
  return path === whole || path.startsWith(`${whole}.`) || path.startsWith(`${whole}[`)
}

/** What the rules need to know of the machine. */
function look(
  files: ConfigFiles,
  source: ConfigSource,
  config: Config,
  file: ConfigFile,
): RuleContext {
  const see = (path: string): RuleFacts => {
    try {
      return files.fileStatus(path)
    } catch (error) {
      const reason = isFault(error) ? error.details['reason'] : describeThrown(error)
      return { kind: 'unreadable', reason: String(reason) }
    }
  }
  return {
    file,
    stateDir: see(config.stateDir),
    repoStorageRoot: see(config.repoStorageRoot),
    configFile: see(files.realPath(source.path) ?? source.path),
  }
}

function asValue<T>(run: () => T): T | Fault {
  try {
    return run()
  } catch (error) {
    if (isFault(error)) return error
    throw error
  }
}

/** One key as it is in force, and where its value comes from. */
type EffectiveValue = Readonly<{
  key: string
  value: unknown
  origin: 'file' | 'default' | 'environment'
}>

/** All keys in the order of the documentation, with paths absolute and without secrets. */
function effectiveValues(
  document: unknown,
  file: ConfigFile,
  config: Config,
  env: Environment,
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
