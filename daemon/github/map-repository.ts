import { parseRepositoryName } from '../core/issue-key.ts'
import type { Actor, PullRequest, RepositoryFacts } from '../core/ports.ts'
import { fieldOf, idOf, recordOf, textOf, timeOf } from './narrow.ts'

// GitHub's JSON → our types; null when something that must be there is not.

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
