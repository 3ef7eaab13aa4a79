import { parseRepositoryName, type RepositoryName } from '../core/issue-key.ts'
import { type Parsed, showFound } from './problem.ts'

const KEY = 'watched_repos'

/** The watched repositories as names. */
export function parseWatchedRepositories(
  texts: readonly string[],
): Parsed<readonly RepositoryName[]> {
  const names = texts.map((text) => parseRepositoryName(text))
  return {
    value: names.filter((name) => name !== null),
    problems: texts.flatMap((text, index) =>
      names[index] === null
        ? [
            {
              path: `${KEY}[${index}]`,
              found: showFound(KEY, text),
              wanted: 'owner/name, as GitHub writes it',
              fix: 'Write owner/name, without a server and without .git.',
            },
          ]
        : [],
    ),
  }
}
