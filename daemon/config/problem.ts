import { redact } from '../core/redaction.ts'
import { CONFIG_SCHEMA } from './schema.ts'

/** One thing wrong with a configuration, for people. Never holds a secret. */
export type Problem = Readonly<{
  /** The key (`watched_repos[1]`), environment variable or file it is about. */
  path: string
  found: string
  wanted: string
  /** What to do, one sentence. */
  fix: string
}>

/** A value made of a key, with what is wrong about it; the value counts only without problems. */
export type Parsed<T> = Readonly<{ value: T; problems: readonly Problem[] }>

/** Stands for values that may hold a credential. */
export const NOT_SHOWN = 'a value that is not shown'

const MAX_SHOWN_CHARACTERS = 80

/** Keys whose values are never shown: those the schema marks as write-only. */
const SECRET_KEYS: readonly string[] = Object.entries(CONFIG_SCHEMA.properties)
  .filter(([, schema]) => 'writeOnly' in schema)
  .map(([key]) => key)

/** One line: what was found, what is expected, what to do. */
export function describeProblem(problem: Problem): string {
  return `${problem.path}: found ${problem.found}; wanted: ${problem.wanted}. ${problem.fix}`
}

/**
 * A value of the configuration, short enough for a line and without secrets.
 * @param key the top-level key it stands under
 */
export function showFound(key: string, value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (SECRET_KEYS.includes(key)) return NOT_SHOWN
  if (typeof value === 'string') return JSON.stringify(shorten(redact(value)))
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'a mapping'
}

function shorten(text: string): string {
  const characters = Array.from(text)
  return characters.length <= MAX_SHOWN_CHARACTERS
    ? text
    : `${characters.slice(0, MAX_SHOWN_CHARACTERS).join('')}…`
}
