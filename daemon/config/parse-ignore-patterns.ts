import { describeThrown } from '../core/fault.ts'
import { type Parsed, type Problem, showFound } from './problem.ts'

const KEY = 'comment_ignore_patterns'

/** Flags at the start of a pattern, as other dialects write them: (?i), (?im), … */
const INLINE_FLAGS = /^\(\?([ims]+)\)/

/**
 * `comment_ignore_patterns`: patterns for the login of a comment's author, compiled. They distinguish upper and
 * lower case unless `(?i)` stands at the start.
 */
export function parseIgnorePatterns(patterns: readonly string[]): Parsed<readonly RegExp[]> {
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
      path: `${KEY}[${index}]`,
      found: showFound(KEY, pattern),
      wanted: `a regular expression (${describeThrown(error)})`,
      fix: 'Correct the expression.',
    }
    return { expression: null, problem }
  }
}
