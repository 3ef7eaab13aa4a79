import { accountIdOf, refusal, type Viewer } from './access.ts'
import { type ApiRequest, headerOf, type Incoming } from './api-request.ts'
import { type Answer, finishReply } from './http-answer.ts'
import type { Hub } from './hub.ts'
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
import { findIssue, findRenamed, findRepository, repositoryById } from './repositories.ts'
import type { Match } from './route-match.ts'
import { isPull, type Repository } from './world.ts'

const ASKING_IS_FREE = '/rate_limit'

/** Answers an API request as GitHub does when nothing is wrong with the network. */
export async function answerApi(
  hub: Hub,
  incoming: Incoming,
  match: Match | null,
  viewer: Viewer,
): Promise<Answer> {
  const window = windowOf(hub.limits, accountIdOf(viewer), hub.clock.now())
  const isFree = match?.route.template === ASKING_IS_FREE
  const reply =
    isExhausted(window) && !isFree
      ? rateLimited(accountIdOf(viewer))
      : await replyTo(hub, incoming, match, viewer)
  const answer = finishReply(hub, incoming, reply)
  if (!isFree && answer.status !== 304) countRequest(window)
  return { ...answer, headers: { ...answer.headers, ...rateHeaders(window) } }
}

async function replyTo(
  hub: Hub,
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
    now: hub.clock.now(),
    pageUrl: `${hub.url}${incoming.prefix}${incoming.path}`,
  }
  if (route.about === 'service') return route.handle(hub, request)

  const { owner = '', repo = '' } = params
  const repository = findRepository(hub.world, owner, repo)
  if (repository === null) {
    const renamed = findRenamed(hub.world, owner, repo)
    return renamed === null ? notFound() : movedTo(hub, incoming, numericPath(incoming, renamed))
  }
  const refused = refusal(hub, request, repository, route.needs)
  if (refused !== null) return refused
  const pageUrl = `${hub.url}${incoming.prefix}/${numericPath(incoming, repository).join('/')}`
  const placed = { ...request, pageUrl }
  if (route.about === 'repository') return route.handle(hub, placed, repository)

  const issue = findIssue(repository, Number(params['issue_number'] ?? params['pull_number']))
  if (issue === null) return notFound()
  if (issue.departure?.kind === 'deleted') return gone('This issue was deleted')
  if (issue.departure?.kind === 'transferred') {
    const { repositoryId, number } = issue.departure
    const rest = incoming.path.split('/').slice(6)
    return movedTo(hub, incoming, ['repositories', repositoryId, 'issues', number, ...rest])
  }
  if (route.about === 'issue') return route.handle(hub, placed, repository, issue)
  return isPull(issue) ? route.handle(hub, placed, repository, issue) : notFound()
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

function movedTo(hub: Hub, incoming: Incoming, path: readonly (string | number)[]): Reply {
  const query = incoming.query === '' ? '' : `?${incoming.query}`
  return moved(incoming.method, `${hub.url}${incoming.prefix}/${path.join('/')}${query}`)
}

/** The requested path with the repository named by its id, as GitHub's redirects and links have it. */
function numericPath(incoming: Incoming, repository: Repository): readonly (string | number)[] {
  return ['repositories', repository.id, ...incoming.path.split('/').slice(4)]
}

/** `/repositories/7/issues` with the repository's name in the id's place; other paths as they are. */
export function namedPath(hub: Hub, path: string): string {
  const [, root, id = '', ...rest] = path.split('/')
  if (root !== 'repositories' || !/^[0-9]{1,15}$/.test(id)) return path
  const repository = repositoryById(hub.world, Number(id))
  if (repository === null) return path
  return ['', 'repos', repository.owner, repository.name, ...rest].join('/')
}
