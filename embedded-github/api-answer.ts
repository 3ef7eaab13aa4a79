// What goes back to an API request: GitHub's answer in HTTP, or what a scripted fault makes of it.

import { createHash } from 'node:crypto'
import {
  accountIdOf,
  countRequest,
  isExhausted,
  rateHeaders,
  refusal,
  type Viewer,
  windowOf,
} from './accounts.ts'
import {
  type ApiRequest,
  badCredentials,
  badRequest,
  forbidden,
  gone,
  headerOf,
  type Incoming,
  moved,
  notFound,
  type Reply,
  rateLimited,
  secondaryLimited,
} from './api-messages.ts'
import type { FaultAction, Hub } from './hub.ts'
import { findIssue, findRenamed, findRepository, repositoryById } from './repositories.ts'
import type { Match } from './routes.ts'
import { isPull, type Repository, seconds } from './world.ts'

const ASKING_IS_FREE = '/rate_limit'

/** Answers an API request as GitHub does when nothing is wrong with the network. */
export async function answerApi(
  hub: Hub,
  incoming: Incoming,
  match: Match | null,
  viewer: Viewer,
): Promise<ApiAnswer> {
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

/** An answer ready for HTTP: headers complete, body a text. */
export type ApiAnswer = Readonly<{
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}>

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }

function commonHeaders(hub: Hub): Readonly<Record<string, string>> {
  return {
    Date: new Date(hub.clock.now()).toUTCString(),
    'X-GitHub-Media-Type': 'github.v3; format=json',
  }
}

/**
 * A reply as HTTP has it, with the validator of conditional requests, and 304 when it
 * matches (RFC 9110 §13).
 */
export function finishReply(hub: Hub, incoming: Incoming, reply: Reply): ApiAnswer {
  const body = reply.body === undefined ? '' : JSON.stringify(reply.body)
  const headers = { ...commonHeaders(hub), ...(body === '' ? {} : JSON_TYPE), ...reply.headers }
  const isRead = incoming.method === 'GET' || incoming.method === 'HEAD'
  if (!isRead || reply.status !== 200) return { status: reply.status, headers, body }
  const etag = validatorOf(body, reply.headers?.['Link'] ?? '')
  const isUnchanged = matchesValidator(headerOf(incoming, 'if-none-match'), etag)
  // GitHub's 304 has no Link header.
  if (isUnchanged) return { status: 304, headers: { ...commonHeaders(hub), ETag: etag }, body: '' }
  return { status: 200, headers: { ...headers, ETag: etag }, body }
}

function validatorOf(body: string, link: string): string {
  const digest = createHash('sha256').update(body).update('\n').update(link).digest('hex')
  return `W/"${digest}"`
}

function matchesValidator(header: string | null, etag: string): boolean {
  if (header === null) return false
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '')
  return header.split(',').some((tag) => tag.trim() === '*' || bare(tag) === bare(etag))
}

/** An answer that a fault rule dictates, with the headers all answers have; it counts as a request. */
function dictatedAnswer(hub: Hub, viewer: Viewer, reply: Reply): ApiAnswer {
  const window = windowOf(hub.limits, accountIdOf(viewer), hub.clock.now())
  countRequest(window)
  const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {})
  const headers = { ...commonHeaders(hub), ...JSON_TYPE, ...rateHeaders(window), ...reply.headers }
  return { status: reply.status, headers, body }
}

/** What goes back: an answer, perhaps broken off after `cutAfter` bytes; nothing ever; or a reset connection. */
export type Outgoing =
  | Readonly<{ kind: 'answer'; answer: ApiAnswer; cutAfter?: number }>
  | Readonly<{ kind: 'hang' }>
  | Readonly<{ kind: 'reset' }>

/** A request about to be treated. `perform` has its effect and gives its true answer. */
type Situation = Readonly<{ hub: Hub; viewer: Viewer; perform: () => Promise<ApiAnswer> }>

const HTML =
  '<!DOCTYPE html><html><head><title>Unicorn! &middot; GitHub</title></head><body><p>This page is taking too long to load.</p></body></html>\n'

/** Lets a scripted fault happen to a request. */
export async function execute(situation: Situation, action: FaultAction): Promise<Outgoing> {
  const { perform } = situation
  switch (action.kind) {
    case 'delay':
    case 'lag':
      return answered(await perform())
    case 'alter':
      return answered(altered(await perform(), action.fields))
    case 'truncate':
      return truncated(await perform(), action)
    case 'hang':
      if (action.effect === true) await perform()
      return { kind: 'hang' }
    case 'reset':
      if (action.effect) await perform()
      return { kind: 'reset' }
    case 'answer':
    case 'html':
      if (action.effect === true) await perform()
      return answered(dictated(situation, action))
    default:
      return answered(limited(situation, action))
  }
}

const answered = (answer: ApiAnswer): Outgoing => ({ kind: 'answer', answer })

type Page = Extract<FaultAction, { kind: 'answer' | 'html' }>
type Limit = Extract<FaultAction, { kind: 'primary-limit' | 'secondary-limit' }>

function dictated({ hub, viewer }: Situation, action: Page): ApiAnswer {
  if (action.kind === 'answer') {
    const { status, body = { message: 'Server Error' }, headers = {} } = action
    return dictatedAnswer(hub, viewer, { status, body, headers })
  }
  const headers = { 'Content-Type': 'text/html; charset=utf-8' }
  return dictatedAnswer(hub, viewer, { status: action.status ?? 502, body: HTML, headers })
}

function limited({ hub, viewer }: Situation, action: Limit): ApiAnswer {
  if (action.kind === 'primary-limit') {
    const reset = seconds(hub.clock.now()) + action.resetInSeconds
    const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(reset) }
    return dictatedAnswer(hub, viewer, { ...rateLimited(accountIdOf(viewer)), headers })
  }
  const { status = 403, retryAfterSeconds: wait } = action
  const headers = wait === undefined ? {} : { 'Retry-After': String(wait) }
  return dictatedAnswer(hub, viewer, { ...secondaryLimited(status), headers })
}

/** Fields laid over the object, or over each object of a list; no validator, for it would vouch for the true answer. */
function altered(answer: ApiAnswer, fields: Readonly<Record<string, unknown>>): ApiAnswer {
  if (answer.body === '') return answer
  const found: unknown = JSON.parse(answer.body)
  const lay = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? { ...value, ...fields } : value
  const { ETag: _, ...headers } = answer.headers
  return {
    ...answer,
    headers,
    body: JSON.stringify(Array.isArray(found) ? found.map(lay) : lay(found)),
  }
}

function truncated(
  answer: ApiAnswer,
  { bytes, cut = false }: Readonly<{ bytes?: number; cut?: boolean }>,
): Outgoing {
  const whole = Buffer.from(answer.body)
  const kept = bytes ?? Math.floor(whole.length / 2)
  if (cut) return { kind: 'answer', answer, cutAfter: kept }
  return answered({ ...answer, body: whole.subarray(0, kept).toString('utf8') })
}
