// Every endpoint there is. Templates are those of GitHub's published description, so that each answer can
// be checked against it. What is not here answers 404, as GitHub does.

import type { Needs } from './access.ts'
import { getRateLimit, getUser, listOwnRepositories } from './account-endpoints.ts'
import {
  createComment,
  getComment,
  listComments,
  removeComment,
  updateComment,
} from './comment-endpoints.ts'
import type { Endpoint, IssueEndpoint, PullEndpoint, RepositoryEndpoint } from './endpoint.ts'
import { listEvents, listTimeline } from './event-endpoints.ts'
import { createIssue, getIssue, listIssues, updateIssue } from './issue-endpoints.ts'
import {
  addIssueLabels,
  createLabel,
  getLabel,
  listIssueLabels,
  listLabels,
  removeIssueLabel,
} from './label-endpoints.ts'
import {
  createPull,
  getPull,
  listCommits,
  listFiles,
  listPulls,
  refuseMerge,
  updatePull,
} from './pull-endpoints.ts'
import { getBranch, getPermission, getRef, getRepository } from './repository-endpoints.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

/** What an endpoint is about decides what is found, and refused, before it is called. */
export type Route = Readonly<{ method: Method; template: string }> &
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
