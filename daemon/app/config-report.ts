import { describeProblem, type Problem } from '../config/problem.ts'
import { CONFIG_SCHEMA } from '../config/schema.ts'
import { describeFault } from '../core/fault.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { inspectProgramConfig, loadProgramConfig } from './load-program-config.ts'

/** `config show`: every key as it is in force, secrets masked. */
export type ShownConfig = Readonly<{
  path: string
  section: string | null
  values: readonly Readonly<{ key: string; value: unknown; origin: string }>[]
}>

/** Faults: config/*. */
export function showConfig(): ShownConfig {
  const { source, values } = loadProgramConfig(readEnvironment())
  return { path: source.path, section: source.section, values }
}

/** One line per key, in YAML's own notation. */
export function renderConfig({ path, section, values }: ShownConfig): string {
  const from = section === null ? path : `${path} (section ${section})`
  const lines = values.map(({ key, value, origin }) => {
    const note = origin === 'file' ? '' : `  # ${origin}`
    return `${key}: ${JSON.stringify(value)}${note}`
  })
  return [`# ${from}`, ...lines].join('\n')
}

/** `config validate`: everything that is wrong or odd, at once. */
export type Validation = Readonly<{
  valid: boolean
  /** null when no configuration was found. */
  path: string | null
  /** Why it does not load when there are no problems to list, such as a file that is not there. */
  error: string | null
  problems: readonly Problem[]
  warnings: readonly Problem[]
}>

export function validateConfig(): Validation {
  const inspection = inspectProgramConfig(readEnvironment())
  if (inspection.kind === 'valid') {
    const { source, warnings } = inspection.loaded
    return { valid: true, path: source.path, error: null, problems: [], warnings }
  }
  const { source, problems, warnings, fault } = inspection
  return {
    valid: false,
    path: source?.path ?? null,
    error: problems.length === 0 ? describeFault(fault) : null,
    problems,
    warnings,
  }
}

export function renderValidation(validation: Validation): string {
  const { valid, path, error, problems, warnings } = validation
  const conclusion = valid ? 'The configuration is valid.' : 'The configuration would not load.'
  return [
    ...(path === null ? [] : [path]),
    ...(error === null ? [] : [`  ${error}`]),
    ...problems.map((problem) => `  problem: ${describeProblem(problem)}`),
    ...warnings.map((warning) => `  warning: ${describeProblem(warning)}`),
    conclusion,
  ].join('\n')
}

/** The JSON schema of the configuration, as editors want it. */
export function configJsonSchema(): object {
  return CONFIG_SCHEMA
}
