// How lists of issues and pull requests are narrowed by state and put in order, by GitHub's parameters.

import type { FieldProblem } from './replies.ts'
import type { Issue } from './state.ts'

const STATES = ['open', 'closed', 'all']

const KEYS = {
  created: (issue: Issue) => issue.createdAt,
  updated: (issue: Issue) => Math.floor(issue.updatedAt / 1000),
  comments: (issue: Issue) => issue.comments.length,
} as const

/** What is wrong with `state` or `direction`. */
export function listingProblems(resource: string, query: URLSearchParams): readonly FieldProblem[] {
  const state = query.get('state') ?? 'open'
  const direction = query.get('direction') ?? 'desc'
  return [
    ...(STATES.includes(state) ? [] : [{ resource, field: 'state', code: 'invalid' }]),
    ...(['asc', 'desc'].includes(direction)
      ? []
      : [{ resource, field: 'direction', code: 'invalid' }]),
  ]
}

export function matchesState(issue: Issue, query: URLSearchParams): boolean {
  const state = query.get('state') ?? 'open'
  return state === 'all' || issue.state === state
}

/** In the order asked for; among equals the younger number counts as the greater. */
export function inOrder(
  issues: readonly Issue[],
  query: URLSearchParams,
  defaultDirection: 'asc' | 'desc' = 'desc',
): readonly Issue[] {
  const sort = query.get('sort')
  const key = sort === 'updated' || sort === 'comments' ? KEYS[sort] : KEYS.created
  const sign = (query.get('direction') ?? defaultDirection) === 'asc' ? 1 : -1
  return [...issues].sort((a, b) => sign * (key(a) - key(b) || a.number - b.number))
}
