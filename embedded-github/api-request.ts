// What a request of the REST API says.

import type { By, Token } from './state.ts'

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
