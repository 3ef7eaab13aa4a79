// What GitHub answers to a request when nothing is wrong with the network.

import { accountIdOf, refusal, type Viewer } from './access.ts'
import { type ApiRequest, headerOf, type Incoming } from './api-request.ts'
import { findIssue, findRenamed, findRepository, repositoryById } from './find-repository.ts'
import { type ApiAnswer, finishReply } from './http-answer.ts'
import type { Match } from './match-route.ts'
import { countRequest, isExhausted, rateHeaders, windowOf } from './rate-limits.ts'
import {
  badCredentials,
  badRequest,
  forbidden,
  gone,
  moved,
  notFound,
  type Reply,
  rateLimited,
} from './replies.ts'
import type { ServerContext } from './server-context.ts'
import { isPull, type Repository } from './state.ts'

const ASKING_IS_FREE = '/rate_limit'

/** Answers an API request as GitHub does when nothing is wrong with the network. */
export async function answerApi(
  context: ServerContext,
  incoming: Incoming,
  match: Match | null,
  viewer: Viewer,
): Promise<ApiAnswer> {
  const window = windowOf(context.limits, accountIdOf(viewer), context.clock.now())
  const isFree = match?.route.template === ASKING_IS_FREE
  const reply =
    isExhausted(window) && !isFree
      ? rateLimited(accountIdOf(viewer))
      : await replyTo(context, incoming, match, viewer)
  const answer = finishReply(context, incoming, reply)
  if (!isFree && answer.status !== 304) countRequest(window)
  return { ...answer, headers: { ...answer.headers, ...rateHeaders(window) } }
}

async function replyTo(
  context: ServerContext,
  incoming: Incoming,
  match: Match | null,
  viewer: Viewer,
): Promise<Reply> {
  if (headerOf(incoming, 'user-agent') === null) {
    return forbidden(
      'Request forbidden by administrative rules. Please make sure your request has a User-Agent header',
    )
  }
  if (viewer.kind === 'rejected') return badCredentials()
  if (match === null) return notFound()
  const body = parseBody(incoming.body)
  if (body.kind === 'invalid') return badRequest('Problems parsing JSON')
  const { route, params } = match
  const request: ApiRequest = {
    method: route.method,
    params,
    query: new URLSearchParams(incoming.query),
    body: body.value,
    viewerId: accountIdOf(viewer),
    token: viewer.kind === 'known' ? viewer.token : null,
    now: context.clock.now(),
    pageUrl: `${context.url}${incoming.prefix}${incoming.path}`,
  }
  if (route.about === 'service') return route.handle(context, request)

  const { owner = '', repo = '' } = params
  const repository = findRepository(context.state, owner, repo)
  if (repository === null) {
    const renamed = findRenamed(context.state, owner, repo)
    return renamed === null
      ? notFound()
      : movedTo(context, incoming, numericPath(incoming, renamed))
  }
  const refused = refusal(context, request, repository, route.needs)
  if (refused !== null) return refused
  const pageUrl = `${context.url}${incoming.prefix}/${numericPath(incoming, repository).join('/')}`
  const placed = { ...request, pageUrl }
  if (route.about === 'repository') return route.handle(context, placed, repository)

  const issue = findIssue(repository, Number(params['issue_number'] ?? params['pull_number']))
  if (issue === null) return notFound()
  if (issue.departure?.kind === 'deleted') return gone('This issue was deleted')
  if (issue.departure?.kind === 'transferred') {
    const { repositoryId, number } = issue.departure
    const rest = incoming.path.split('/').slice(6)
    return movedTo(context, incoming, ['repositories', repositoryId, 'issues', number, ...rest])
  }
  if (route.about === 'issue') return route.handle(context, placed, repository, issue)
  return isPull(issue) ? route.handle(context, placed, repository, issue) : notFound()
}

function parseBody(
  bytes: Buffer,
): Readonly<{ kind: 'parsed'; value: unknown }> | Readonly<{ kind: 'invalid' }> {
  if (bytes.length === 0) return { kind: 'parsed', value: undefined }
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return { kind: 'parsed', value }
  } catch {
    return { kind: 'invalid' }
  }
}

function movedTo(
  context: ServerContext,
  incoming: Incoming,
  path: readonly (string | number)[],
): Reply {
  const query = incoming.query === '' ? '' : `?${incoming.query}`
  return moved(incoming.method, `${context.url}${incoming.prefix}/${path.join('/')}${query}`)
}

/** The requested path with the repository named by its id, as GitHub's redirects and links have it. */
function numericPath(incoming: Incoming, repository: Repository): readonly (string | number)[] {
  return ['repositories', repository.id, ...incoming.path.split('/').slice(4)]
}

/** `/repositories/7/issues` with the repository's name in the id's place; other paths as they are. */
export function namedPath(context: ServerContext, path: string): string {
  const [, root, id = '', ...rest] = path.split('/')
  if (root !== 'repositories' || !/^[0-9]{1,15}$/.test(id)) return path
  const repository = repositoryById(context.state, Number(id))
  if (repository === null) return path
  return ['', 'repos', repository.owner, repository.name, ...rest].join('/')
}
