// What a request of the REST API says, and the replies there are.

import type { By, Issue, Token } from './world.ts'

/** An HTTP request as it arrived; the path still encoded, without `/api/v3`. */
export type Incoming = Readonly<{
  method: string
  path: string
  query: string
  /** What stood before the path: empty, or `/api/v3`. */
  prefix: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: Buffer
}>

/** A request whose sender and endpoint are known, as endpoints see it. */
export type ApiRequest = Readonly<{
  method: string
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  /** Parsed JSON; undefined without a body. */
  body: unknown
  /** null = no token. */
  viewerId: number | null
  token: Token | null
  now: number
  /** Where the pages of a list are: GitHub's links name repositories by id. */
  pageUrl: string
}>

/** The sender, as the one who does what it asks for. */
export function byViewer(request: ApiRequest): By {
  return { actorId: request.viewerId, now: request.now }
}

/** null when it is absent or empty. */
export function headerOf(incoming: Incoming, name: string): string | null {
  const value = incoming.headers[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** Longest body GitHub takes, for issues, pull requests and comments alike; in characters. */
const MAX_BODY_CHARACTERS = 65_536
const MAX_TITLE_CHARACTERS = 256

export type Fields = Readonly<Record<string, unknown>>

/** The fields of a JSON object; of anything else none. */
export function fieldsOf(body: unknown): Fields {
  return isFields(body) ? body : {}
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A text, or null when the field is absent, null or something else. */
export function textField(fields: Fields, name: string): string | null {
  const value = fields[name]
  return typeof value === 'string' ? value : null
}

/** Names of labels, given as texts or as objects with a name; null when it is neither. */
export function labelNames(value: unknown): readonly string[] | null {
  if (!Array.isArray(value)) return null
  const names = value.map((entry: unknown) => {
    return typeof entry === 'string' ? entry : textField(fieldsOf(entry), 'name')
  })
  return names.every((name) => name !== null && name !== '')
    ? names.filter((n) => n !== null)
    : null
}

/** What is wrong with fields that have to be texts, or null, when they are given. */
export function textProblems(
  resource: string,
  fields: Fields,
  names: readonly string[],
): readonly FieldProblem[] {
  const isWrong = (value: unknown) =>
    value !== undefined && value !== null && typeof value !== 'string'
  return names
    .filter((name) => isWrong(fields[name]))
    .map((field) => ({ resource, field, code: 'invalid' }))
}

/** @param isRequired whether there has to be a title */
export function titleProblems(
  resource: string,
  fields: Fields,
  isRequired: boolean,
): readonly FieldProblem[] {
  const title = textField(fields, 'title')
  const isAbsent = (fields['title'] ?? null) === null
  if (title === null && !(isRequired && isAbsent)) return []
  if (title === null || title.trim() === '') {
    return [{ resource, field: 'title', code: 'missing_field' }]
  }
  if (characters(title) <= MAX_TITLE_CHARACTERS) return []
  const message = `title is too long (maximum is ${MAX_TITLE_CHARACTERS} characters)`
  return [{ resource: 'Issue', field: 'title', code: 'custom', message }]
}

/** GitHub reports it on the issue that every pull request is. */
export function bodyProblems(fields: Fields): readonly FieldProblem[] {
  const body = textField(fields, 'body') ?? ''
  if (characters(body) <= MAX_BODY_CHARACTERS) return []
  const message = `body is too long (maximum is ${MAX_BODY_CHARACTERS} characters)`
  return [{ resource: 'Issue', field: 'body', code: 'custom', message }]
}

/** Of a comment, where the body has to be there, and GitHub reports its length in another way. */
export function commentProblems(fields: Fields): readonly FieldProblem[] {
  const body = textField(fields, 'body')
  if (body === null || body.trim() === '') {
    return [{ resource: 'IssueComment', field: 'body', code: 'missing_field' }]
  }
  if (characters(body) <= MAX_BODY_CHARACTERS) return []
  const message = `Body is too long (maximum is ${MAX_BODY_CHARACTERS} characters)`
  return [{ resource: 'IssueComment', field: 'data', code: 'unprocessable', message }]
}

/** Unicode characters, not UTF-16 units: an emoji is one. */
const characters = (text: string): number =>
  text.length <= 256 ? text.length : Array.from(text).length

// How lists of issues and pull requests are narrowed by state and put in order, by GitHub's parameters.

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

// Answers of the API before they are put into HTTP. Wording and shape of errors are GitHub's own.

/** `body: undefined` = no body at all. */
export type Reply = Readonly<{
  status: number
  body?: unknown
  headers?: Readonly<Record<string, string>>
}>

const DOCS = 'https://docs.github.com/rest'

const error = (
  status: number,
  message: string,
  more: Readonly<Record<string, unknown>> = {},
): Reply => ({
  status,
  body: { message, ...more, documentation_url: DOCS, status: String(status) },
})

export const ok = (body: unknown): Reply => ({ status: 200, body })

export const created = (body: unknown, url: string): Reply => ({
  status: 201,
  body,
  headers: { Location: url },
})

export const noContent = (): Reply => ({ status: 204 })

export const badRequest = (message: string): Reply => error(400, message)

export const badCredentials = (): Reply => error(401, 'Bad credentials')

export const requiresAuthentication = (): Reply => error(401, 'Requires authentication')

/** @param permission what the token lacks, as GitHub's header names it: `issues=write` */
export const notAccessible = (permission: string): Reply => ({
  ...error(403, 'Resource not accessible by personal access token'),
  headers: { 'X-Accepted-GitHub-Permissions': permission },
})

export const forbidden = (message: string): Reply => error(403, message)

export const notFound = (message = 'Not Found'): Reply => error(404, message)

export const notAllowed = (message: string): Reply => error(405, message)

export const gone = (message: string): Reply => error(410, message)

export const tooLarge = (): Reply => error(413, 'Payload too large')

/** GitHub keeps the method of a write with 307 and calls both "Moved Permanently". */
export const moved = (method: string, url: string): Reply => ({
  status: method === 'GET' || method === 'HEAD' ? 301 : 307,
  body: { message: 'Moved Permanently', url, documentation_url: `${DOCS}/#http-redirects` },
  headers: { Location: url },
})

export type FieldProblem = Readonly<{
  resource: string
  code: string
  field?: string
  message?: string
}>

export const invalid = (...errors: readonly FieldProblem[]): Reply =>
  error(422, 'Validation Failed', { errors })

export const rateLimited = (accountId: number | null): Reply =>
  error(
    403,
    accountId === null
      ? 'API rate limit exceeded for 127.0.0.1.'
      : `API rate limit exceeded for user ID ${accountId}.`,
  )

export const secondaryLimited = (status: 403 | 429): Reply =>
  error(
    status,
    'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
  )

const DEFAULT_PER_PAGE = 30
const MAX_PER_PAGE = 100

/** One page of a list, with GitHub's Link header (GitHub docs, "Using pagination in the REST API"). */
export function listReply<Item>(
  request: Pick<ApiRequest, 'query' | 'pageUrl'>,
  items: readonly Item[],
  present: (item: Item) => unknown,
): Reply {
  const perPage = Math.min(MAX_PER_PAGE, positive(request.query.get('per_page'), DEFAULT_PER_PAGE))
  const page = positive(request.query.get('page'), 1)
  const body = items.slice((page - 1) * perPage, page * perPage).map(present)
  const link = linkHeader(request, page, Math.max(1, Math.ceil(items.length / perPage)))
  return { status: 200, body, headers: link === '' ? {} : { Link: link } }
}

/** Empty when there is but one page. */
function linkHeader(
  request: Pick<ApiRequest, 'query' | 'pageUrl'>,
  page: number,
  lastPage: number,
): string {
  const link = (rel: string, to: number): string => {
    const query = new URLSearchParams(request.query)
    query.set('page', String(to))
    return `<${request.pageUrl}?${query.toString()}>; rel="${rel}"`
  }
  const back = page > 1 ? [link('prev', Math.min(page - 1, lastPage))] : []
  const forth = page < lastPage ? [link('next', page + 1), link('last', lastPage)] : []
  const first = page > 1 ? [link('first', 1)] : []
  return [...back, ...forth, ...first].join(', ')
}

function positive(text: string | null, otherwise: number): number {
  const value = Number(text)
  return text !== null && Number.isInteger(value) && value > 0 ? value : otherwise
}
