import {
  type IssueKey,
  issueId,
  parseRepositoryName,
  type RepositoryName,
  repositoryOf,
} from '../core/issue-key.ts'
import type {
  Actor,
  IssueComment,
  IssueSummary,
  PullRequest,
  ReferringPull,
  RepositoryFacts,
  TimelineEvent,
} from '../core/ports.ts'

// GitHub's JSON → our types (R§5.6): what may be missing becomes empty; what must be there and is not makes
// null.

/** null when number or time of change are unusable. */
export function toIssue(value: unknown): IssueSummary | null {
  const number = idOf(value, 'number')
  const updatedAt = timeOf(value, 'updated_at') ?? timeOf(value, 'created_at')
  if (number === null || updatedAt === null) return null
  const pull = recordOf(value, 'pull_request')
  return {
    number,
    title: textOf(value, 'title') ?? '',
    body: textOf(value, 'body') ?? '',
    author: textOf(recordOf(value, 'user'), 'login'),
    labels: toLabels(fieldOf(value, 'labels')),
    isOpen: textOf(value, 'state') === 'open',
    isPullRequest: pull !== null,
    mergedAt: timeOf(pull, 'merged_at'),
    updatedAt,
    commentCount: idOf(value, 'comments') ?? 0,
  }
}

/** Labels come as objects; older answers have plain names. */
function toLabels(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return []
  return value
    .map((label: unknown) => (typeof label === 'string' ? label : textOf(label, 'name')))
    .filter((name) => name !== null)
}

/** null when id or time are unusable: a list with a hole cannot prove that a comment is absent. */
export function toComment(value: unknown): IssueComment | null {
  const id = idOf(value, 'id')
  const createdAt = timeOf(value, 'created_at')
  if (id === null || createdAt === null) return null
  const user = recordOf(value, 'user')
  return {
    id,
    author: textOf(user, 'login'),
    authorId: idOf(user, 'id'),
    authorAssociation: textOf(value, 'author_association') ?? 'NONE',
    body: textOf(value, 'body') ?? '',
    createdAt,
    updatedAt: timeOf(value, 'updated_at') ?? createdAt,
  }
}

/**
 * Any event; unknown kinds are kept as they are. Some have no id (a cross-reference), no actor (a
 * commit) or another name for their time (a review): 0 and null stand for what is missing.
 */
export function toTimelineEvent(value: unknown): TimelineEvent {
  const actor = recordOf(value, 'actor') ?? recordOf(value, 'user')
  return {
    id: idOf(value, 'id') ?? 0,
    kind: textOf(value, 'event') ?? 'unknown',
    actor: textOf(actor, 'login'),
    actorId: idOf(actor, 'id'),
    createdAt:
      timeOf(value, 'created_at') ??
      timeOf(value, 'submitted_at') ??
      timeOf(recordOf(value, 'committer'), 'date') ??
      0,
    label: textOf(recordOf(value, 'label'), 'name'),
    pull: toReferringPull(recordOf(recordOf(value, 'source'), 'issue')),
  }
}

/** Of a cross-reference; null when it came from an issue, or from something we cannot read. */
function toReferringPull(value: unknown): ReferringPull | null {
  const number = idOf(value, 'number')
  if (number === null || recordOf(value, 'pull_request') === null) return null
  return {
    repository: repositoryIn(textOf(value, 'repository_url'), -2),
    number,
    isOpen: textOf(value, 'state') === 'open',
    author: textOf(recordOf(value, 'user'), 'login'),
    title: textOf(value, 'title') ?? '',
    body: textOf(value, 'body') ?? '',
  }
}

/**
 * The issue an answer is about, when it is not the one that was asked: a redirect was followed, perhaps to another
 * number in the same repository, as of an issue that was transferred away and back.
 */
export function movedTo(value: unknown, asked: IssueKey): IssueKey | null {
  const repository =
    repositoryIn(textOf(value, 'repository_url'), -2) ?? repositoryIn(textOf(value, 'html_url'), 0)
  const number = idOf(value, 'number') ?? asked.number
  const found = { ...(repository ?? repositoryOf(asked)), number }
  return issueId(found) === issueId(asked) ? null : found
}

/** owner/name from two segments of a URL's path; `at` counts from its start, negative from its end. */
function repositoryIn(url: string | null, at: number): RepositoryName | null {
  if (url === null || !URL.canParse(url)) return null
  const segments = new URL(url).pathname.split('/').filter((segment) => segment !== '')
  const [owner, name] = segments.slice(at)
  return parseRepositoryName(`${owner}/${name}`)
}

export function toActor(value: unknown): Actor | null {
  const id = idOf(value, 'id')
  const login = textOf(value, 'login')
  return id === null || login === null ? null : { id, login }
}

export function toRepository(value: unknown): RepositoryFacts | null {
  const id = idOf(value, 'id')
  const name = parseRepositoryName(textOf(value, 'full_name') ?? '')
  const defaultBranch = textOf(value, 'default_branch')
  if (id === null || name === null || defaultBranch === null) return null
  return { id, name, defaultBranch, archived: fieldOf(value, 'archived') === true }
}

/** An entry of a list of repositories; retired = archived or disabled, so nothing can be written there. */
export function toListedRepository(
  value: unknown,
): Readonly<{ name: RepositoryName; isRetired: boolean }> | null {
  const name = parseRepositoryName(textOf(value, 'full_name') ?? '')
  if (name === null) return null
  const isRetired = fieldOf(value, 'archived') === true || fieldOf(value, 'disabled') === true
  return { name, isRetired }
}

/** From a list or from a single answer: only the latter has `merged`, both have `merged_at`. */
export function toPullRequest(value: unknown): PullRequest | null {
  const head = recordOf(value, 'head')
  const number = idOf(value, 'number')
  const url = textOf(value, 'html_url')
  const state = textOf(value, 'state')
  const headBranch = textOf(head, 'ref')
  const headOid = textOf(head, 'sha')
  const baseBranch = textOf(recordOf(value, 'base'), 'ref')
  if (number === null || url === null || (state !== 'open' && state !== 'closed')) return null
  if (headBranch === null || headOid === null || baseBranch === null) return null
  return {
    number,
    url,
    state,
    merged: fieldOf(value, 'merged') === true || timeOf(value, 'merged_at') !== null,
    headBranch,
    headRepositoryId: idOf(recordOf(head, 'repo'), 'id'),
    headOid,
    baseBranch,
    title: textOf(value, 'title') ?? '',
    body: textOf(value, 'body') ?? '',
    authorId: idOf(recordOf(value, 'user'), 'id'),
  }
}

// Reading fields of JSON that came from outside: null is "not there, or not what it should be".

type Json = Readonly<Record<string, unknown>>

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function recordOf(value: unknown, name: string): Json | null {
  const field = fieldOf(value, name)
  return isJson(field) ? field : null
}

export function textOf(value: unknown, name: string): string | null {
  const field = fieldOf(value, name)
  return typeof field === 'string' ? field : null
}

/** A positive whole number, as GitHub's ids and numbers are. */
export function idOf(value: unknown, name: string): number | null {
  const field = fieldOf(value, name)
  return typeof field === 'number' && Number.isSafeInteger(field) && field > 0 ? field : null
}

/** A moment in milliseconds since the epoch. */
export function timeOf(value: unknown, name: string): number | null {
  const text = textOf(value, name)
  const time = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? null : time
}

export function fieldOf(value: unknown, name: string): unknown {
  return isJson(value) && Object.hasOwn(value, name) ? value[name] : undefined
}
