import { type IssueKey, type RepositoryName, repositoryId, repositoryOf } from './issue-key.ts'
import type { ReferringPull, TimelineEvent } from './ports.ts'

// Which pull requests close an issue. GitHub acts on a keyword that is followed by a reference, in the text of a
// pull request (GitHub docs, "Linking a pull request to an issue using a keyword").

const KEYWORD = String.raw`(?<![A-Za-z0-9_])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+`
const REFERENCE = String.raw`(?:(?<slug>[A-Za-z0-9-]{1,39}\/[A-Za-z0-9._-]{1,100})?#|GH-|https?:\/\/[^\s/]{1,253}\/(?<path>[A-Za-z0-9-]{1,39}\/[A-Za-z0-9._-]{1,100})\/(?:issues|pull)\/)(?<number>\d{1,10})(?!\d)`
const CLOSING = new RegExp(KEYWORD + REFERENCE, 'gi')

/** Code, in which GitHub ignores keywords; each part ends at its first closing mark. */
const CODE = /```[^`]*```|~~~[^~]*~~~|`[^`\n]*`/g

/**
 * Whether merging a pull request with this text closes an issue.
 * @param home the pull request's repository, which a reference without a repository means
 */
export function closesIssue(text: string, home: RepositoryName, key: IssueKey): boolean {
  const expected = repositoryId(repositoryOf(key))
  return [...withoutComments(text).replaceAll(CODE, ' ').matchAll(CLOSING)].some(
    ({ groups = {} }) => {
      const named = groups['slug'] ?? groups['path'] ?? repositoryId(home)
      return Number(groups['number']) === key.number && named.toLowerCase() === expected
    },
  )
}

/** Not done by a pattern, which would search for the end of a comment from every beginning, in quadratic time. */
function withoutComments(text: string): string {
  const parts: string[] = []
  let from = 0
  for (let start = text.indexOf('<!--'); start >= 0; start = text.indexOf('<!--', from)) {
    const end = text.indexOf('-->', start + 4)
    if (end < 0) break
    parts.push(text.slice(from, start))
    from = end + 3
  }
  return [...parts, text.slice(from)].join(' ')
}

/**
 * The first open pull request of any author in an issue's timeline that closes the issue; null = none. A pull
 * request of ours counts also when it only refers to the issue, as it does under `close_issue: never`.
 * @param ownLogin of our account
 */
export function openPullClosing(
  timeline: readonly TimelineEvent[],
  key: IssueKey,
  ownLogin: string,
): ReferringPull | null {
  const pulls = timeline.flatMap(({ pull }) => (pull?.isOpen ? [pull] : []))
  const refers = new RegExp(`^Refs #${key.number}(?!\\d)`)
  const closes = (pull: ReferringPull): boolean =>
    closesIssue(`${pull.title}\n\n${pull.body}`, pull.repository ?? repositoryOf(key), key) ||
    (pull.author === ownLogin && refers.test(pull.body))
  return pulls.find(closes) ?? null
}
