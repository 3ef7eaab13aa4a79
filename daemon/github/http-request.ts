import { endpoint } from '@octokit/endpoint'
import type { RepositoryName } from '../core/issue-key.ts'

// Requests of GitHub's REST API, and their answers. Octokit's endpoint package fills its URL templates (a
// label in a path or a query is encoded right); sending is ours, see send.ts.

/** One request, without credentials. */
export type HttpRequest = Readonly<{
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  url: string
  headers: Readonly<Record<string, string>>
  body: string | null
  /** What it asks about, for people: `owner/name#3`. */
  subject: string
}>

/** A body as far as it could be read. Whether an unreadable one matters depends on what it is for. */
export type Body =
  | Readonly<{ kind: 'text'; text: string }>
  | Readonly<{ kind: 'unreadable'; reason: string }>

export type HttpAnswer = Readonly<{ status: number; headers: Headers; body: Body }>

/** `METHOD /path/{name}` as GitHub documents it. */
type Route = `${HttpRequest['method']} /${string}`

export type RequestBuilder = (
  subject: string,
  route: Route,
  parameters?: Readonly<Record<string, string | number>>,
) => HttpRequest

/**
 * @param apiBase `https://api.github.com`, `https://host/api/v3` or a loopback base with any path; the
 *   path is kept in front of every route (R§12 W53)
 * @param version of this program, for the User-Agent that GitHub asks for
 */
export function openRequestBuilder(apiBase: string, version: string): RequestBuilder {
  const build = endpoint.defaults({
    baseUrl: apiBase.replace(/\/+$/, ''),
    headers: {
      accept: 'application/vnd.github+json',
      'user-agent': `caduceus/${version}`,
      'x-github-api-version': '2022-11-28',
    },
  })
  return (subject, route, parameters = {}) => {
    const method = METHODS[route.slice(0, route.indexOf(' '))] ?? 'GET'
    const filled: Filled = build(route, parameters)
    return {
      method,
      url: filled.url,
      headers: namedHeaders(filled.headers),
      body: filled.body === undefined ? null : JSON.stringify(filled.body),
      subject,
    }
  }
}

type Filled = Readonly<{
  url: string
  headers: Readonly<Record<string, string | number | undefined>>
  body?: unknown
}>

const METHODS: Readonly<Record<string, HttpRequest['method']>> = {
  GET: 'GET',
  POST: 'POST',
  PATCH: 'PATCH',
  DELETE: 'DELETE',
}

function namedHeaders(headers: Filled['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, String(value ?? '')]),
  )
}

export function isWrite(request: HttpRequest): boolean {
  return request.method !== 'GET'
}

export function withHeader(request: HttpRequest, name: string, value: string): HttpRequest {
  return { ...request, headers: { ...request.headers, [name]: value } }
}

/** Method and path for messages; a query is left out, it is long and tells nothing. */
export function describeRequest(request: HttpRequest): string {
  return `${request.method} ${new URL(request.url).pathname.slice(0, 200)}`
}

/** The parameters every route of a repository has. */
export function inRepository(
  repository: RepositoryName,
): Readonly<{ owner: string; repo: string }> {
  return { owner: repository.owner, repo: repository.name }
}
