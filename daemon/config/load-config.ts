import { type Fault, fault, isFault, reasonOf } from '../core/fault.ts'
import { checkDocument } from './check-document.ts'
import { type EffectiveValue, effectiveValues } from './effective-values.ts'
import { type ConfigSource, type FoundSource, findSource } from './find-source.ts'
import { type Config, makeConfig } from './make-config.ts'
import { describeProblem, type Problem } from './problem.ts'
import type { ConfigFiles } from './read-yaml.ts'
import { ADVICE, RULES, type RuleContext, type RuleFacts } from './rules.ts'
import type { ConfigFile } from './schema.ts'

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
 * The configuration in force. It does not ask for a token: see `resolveToken`.
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
  { source, context, document }: FoundSource,
): ConfigInspection {
  const checked = checkDocument(document)
  const { file } = checked
  if (file === null) return invalid(source, checked.problems, checked.warnings)

  const made = makeConfig(file, context, env)
  const config = made.value
  const facts = ruleContext(files, source, config, file)
  const ruled = Object.values(RULES).map((rule) => rule(config, facts))
  const problems = [...checked.problems]
  for (const more of [made.problems, ...ruled]) problems.push(...withoutKnown(problems, more))
  const advice = Object.values(ADVICE).flatMap((rule) => rule(config, facts))
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

/** The problems about values of which neither the whole nor a part has been reported already. */
function withoutKnown(known: readonly Problem[], more: readonly Problem[]): readonly Problem[] {
  return more.filter(({ path }) => !known.some((one) => isWithin(path, one.path)))
}

function isWithin(path: string, whole: string): boolean {
  return path === whole || path.startsWith(`${whole}.`) || path.startsWith(`${whole}[`)
}

/** What the rules need to know of the machine. */
function ruleContext(
  files: ConfigFiles,
  source: ConfigSource,
  config: Config,
  file: ConfigFile,
): RuleContext {
  const inspect = (path: string): RuleFacts => {
    try {
      return files.fileStatus(path)
    } catch (error) {
      return { kind: 'unreadable', reason: reasonOf(error) }
    }
  }
  return {
    file,
    stateDir: inspect(config.stateDir),
    repoStorageRoot: inspect(config.repoStorageRoot),
    configFile: inspect(files.realPath(source.path) ?? source.path),
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
