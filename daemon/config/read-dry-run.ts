import type { Parsed } from './problem.ts'

const VARIABLE = 'CADUCEUS_DRY_RUN'

const WORDS: Readonly<Record<string, boolean>> = {
  '1': true,
  true: true,
  yes: true,
  '0': false,
  false: false,
  no: false,
}

/**
 * Whether runs are dry: CADUCEUS_DRY_RUN overrides the key, in both directions. No other key has such a variable.
 * @param configured the value of `dry_run`
 */
export function readDryRun(
  env: Readonly<Record<string, string>>,
  configured: boolean,
): Parsed<boolean> {
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

/** Whether the variable decides, and not the key. */
export function isDryRunOverridden(env: Readonly<Record<string, string>>): boolean {
  return env[VARIABLE] !== undefined
}
