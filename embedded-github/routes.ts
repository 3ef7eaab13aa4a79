// Every endpoint there is. Templates are those of GitHub's published description, so that each answer can
// be checked against it. What is not here answers 404, as GitHub does.

import type { Needs } from './accounts.ts'
import type { Endpoint, IssueEndpoint, PullEndpoint, RepositoryEndpoint } from './hub.ts'
import {
  createComment,
  createIssue,
  getComment,
  getIssue,
  listComments,
  listEvents,
  listIssues,
  listTimeline,
  removeComment,
  updateComment,
  updateIssue,
} from './issue-endpoints.ts'
import {
  addIssueLabels,
  createLabel,
  createPull,
  getBranch,
  getLabel,
  getPermission,
  getPull,
  getRateLimit,
  getRef,
  getRepository,
  getUser,
  listCommits,
  listFiles,
  listIssueLabels,
  listLabels,
  listOwnRepositories,
  listPulls,
  refuseMerge,
  removeIssueLabel,
  updatePull,
} from './repository-endpoints.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

/** What an endpoint is about decides what is looked up, and refused, before it is called. */
type Route = Readonly<{ method: Method; template: string }> &
  (
    | Readonly<{ about: 'service'; handle: Endpoint }>
    | Readonly<{ about: 'repository'; needs: Needs; handle: RepositoryEndpoint }>
    | Readonly<{ about: 'issue'; needs: Needs; handle: IssueEndpoint }>
    | Readonly<{ about: 'pull'; needs: Needs; handle: PullEndpoint }>
  )

const REPO = '/repos/{owner}/{repo}'
const ISSUE = `${REPO}/issues/{issue_number}`
const COMMENT = `${REPO}/issues/comments/{comment_id}`
const PULL = `${REPO}/pulls/{pull_number}`

const needs = (scope: Needs['scope'], level: Needs['level'], role: Needs['role']): Needs => ({
  scope,
  level,
  role,
})
const metadata = needs('metadata', 'read', 'read')
const contents = needs('contents', 'read', 'read')
const issues = needs('issues', 'read', 'read')
const pulls = needs('pull_requests', 'read', 'read')
const speak = needs('issues', 'write', 'read')
const triage = needs('issues', 'write', 'triage')

// biome-ignore format: one endpoint per line
export const ROUTES: readonly Route[] = [
  { method: 'GET', template: '/user', about: 'service', handle: getUser },
  { method: 'GET', template: '/user/repos', about: 'service', handle: listOwnRepositories },
  { method: 'GET', template: '/rate_limit', about: 'service', handle: getRateLimit },

  { method: 'GET', template: REPO, about: 'repository', needs: metadata, handle: getRepository },
  { method: 'GET', template: `${REPO}/collaborators/{username}/permission`, about: 'repository', needs: needs('metadata', 'read', 'write'), handle: getPermission },
  { method: 'GET', template: `${REPO}/branches/{branch}`, about: 'repository', needs: contents, handle: getBranch },
  { method: 'GET', template: `${REPO}/git/ref/{ref}`, about: 'repository', needs: contents, handle: getRef },

  { method: 'GET', template: `${REPO}/labels`, about: 'repository', needs: issues, handle: listLabels },
  { method: 'POST', template: `${REPO}/labels`, about: 'repository', needs: needs('issues', 'write', 'write'), handle: createLabel },
  { method: 'GET', template: `${REPO}/labels/{name}`, about: 'repository', needs: issues, handle: getLabel },

  { method: 'GET', template: `${REPO}/issues`, about: 'repository', needs: issues, handle: listIssues },
  { method: 'POST', template: `${REPO}/issues`, about: 'repository', needs: speak, handle: createIssue },
  { method: 'GET', template: COMMENT, about: 'repository', needs: issues, handle: getComment },
  { method: 'PATCH', template: COMMENT, about: 'repository', needs: speak, handle: updateComment },
  { method: 'DELETE', template: COMMENT, about: 'repository', needs: speak, handle: removeComment },
  { method: 'GET', template: ISSUE, about: 'issue', needs: issues, handle: getIssue },
  { method: 'PATCH', template: ISSUE, about: 'issue', needs: speak, handle: updateIssue },
  { method: 'GET', template: `${ISSUE}/comments`, about: 'issue', needs: issues, handle: listComments },
  { method: 'POST', template: `${ISSUE}/comments`, about: 'issue', needs: speak, handle: createComment },
  { method: 'GET', template: `${ISSUE}/labels`, about: 'issue', needs: issues, handle: listIssueLabels },
  { method: 'POST', template: `${ISSUE}/labels`, about: 'issue', needs: triage, handle: addIssueLabels },
  { method: 'DELETE', template: `${ISSUE}/labels/{name}`, about: 'issue', needs: triage, handle: removeIssueLabel },
  { method: 'GET', template: `${ISSUE}/events`, about: 'issue', needs: issues, handle: listEvents },
  { method: 'GET', template: `${ISSUE}/timeline`, about: 'issue', needs: issues, handle: listTimeline },

  { method: 'GET', template: `${REPO}/pulls`, about: 'repository', needs: pulls, handle: listPulls },
  { method: 'POST', template: `${REPO}/pulls`, about: 'repository', needs: needs('pull_requests', 'write', 'write'), handle: createPull },
  { method: 'GET', template: PULL, about: 'pull', needs: pulls, handle: getPull },
  { method: 'PATCH', template: PULL, about: 'pull', needs: needs('pull_requests', 'write', 'read'), handle: updatePull },
  { method: 'GET', template: `${PULL}/files`, about: 'pull', needs: pulls, handle: listFiles },
  { method: 'GET', template: `${PULL}/commits`, about: 'pull', needs: pulls, handle: listCommits },
  { method: 'PUT', template: `${PULL}/merge`, about: 'pull', needs: needs('contents', 'write', 'write'), handle: refuseMerge },
]

/** How a route is named in fault rules and in the request log. */
export function routeName(route: Route): string {
  return `${route.method} ${route.template}`
}

/** A request's endpoint, and the decoded values of its template. */
export type Match = Readonly<{ route: Route; params: Readonly<Record<string, string>> }>

/** Parameters that may hold slashes, as branch names do; they come last in their template. */
const GREEDY = ['{branch}', '{ref}']

/**
 * The endpoint of a request, or null. HEAD is GET without a body. Fixed words win over parameters because
 * they come first in ROUTES.
 * @param path as it was sent: decoded only after it was split, so that `%2F` stays within a segment
 */
export function matchRoute(method: string, path: string): Match | null {
  const segments = path.split('/')
  const wanted = method === 'HEAD' ? 'GET' : method
  for (const route of ROUTES) {
    const params = route.method === wanted ? matchTemplate(route.template, segments) : null
    if (params !== null) return { route, params }
  }
  return null
}

function matchTemplate(
  template: string,
  segments: readonly string[],
): Readonly<Record<string, string>> | null {
  const names = template.split('/')
  const last = names.at(-1) ?? ''
  const isGreedy = GREEDY.includes(last) && segments.length > names.length
  const given = isGreedy
    ? [...segments.slice(0, names.length - 1), segments.slice(names.length - 1).join('/')]
    : segments
  if (given.length !== names.length) return null
  const params: Record<string, string> = {}
  for (const [index, name] of names.entries()) {
    const value = decode(given[index] ?? '')
    if (value === null) return null
    if (!name.startsWith('{')) {
      if (name !== value) return null
    } else if (value === '') return null
    else params[name.slice(1, -1)] = value
  }
  return params
}

/** null for a malformed percent sequence. */
function decode(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
