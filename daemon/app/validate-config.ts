import { describeProblem, type Problem } from '../config/problem.ts'
import { describeFault } from '../core/fault.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { inspectProgramConfig } from './load-program-config.ts'

/** `config validate`: everything that is wrong or odd, at once. */
export type Validation = Readonly<{
  valid: boolean
  /** null when no configuration was found. */
  path: string | null
  /** What keeps it from loading besides the problems, such as a file that is not there. */
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
  const verdict = valid ? 'The configuration is valid.' : 'The configuration would not load.'
  return [
    ...(path === null ? [] : [path]),
    ...(error === null ? [] : [`  ${error}`]),
    ...problems.map((problem) => `  problem: ${describeProblem(problem)}`),
    ...warnings.map((warning) => `  warning: ${describeProblem(warning)}`),
    verdict,
  ].join('\n')
}
