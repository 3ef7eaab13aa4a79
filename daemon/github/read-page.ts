import { LIMITS } from '../core/limits.ts'
import { answerFault, badAnswer } from './answer-fault.ts'
import type { Answered, Connection } from './connection.ts'
import type { EtagCache } from './etag-cache.ts'
import { type HttpRequest, withHeader } from './http-request.ts'
import { nextLink } from './link-header.ts'

/** The JSON of one GET. */
export type Page = Readonly<{
  value: unknown
  /** Where the next page is, as GitHub's Link header says. */
  next: string | null
  serverTime: number
  /** The content came from the cache: GitHub answered 304. */
  unchanged: boolean
}>

/** null = 404 or 410. Faults: those of the connection, github/failed, github/refused. */
export type ReadPage = (request: HttpRequest) => Promise<Page | null>

/** Reads without a cache. */
export function pageReader(connection: Connection): ReadPage {
  return async (request) => pageOf(request, await connection.exchange(request))
}

/**
 * Reads through the cache. A 304 without a usable body is asked again, once, without a validator
 * (cases C6); the Link header is kept with the body, so pages go on after a 304 (R§12 W54).
 */
export function cachedPageReader(connection: Connection, cache: EtagCache): ReadPage {
  return async (request) => {
    const cached = cache.load(request)
    const answer = await connection.exchange(
      cached === null ? request : withHeader(request, 'if-none-match', cached.etag),
    )
    if (answer.status !== 304) return stored(cache, request, answer)
    const value = cached === null ? undefined : parseJson(cached.text)
    if (cached !== null && value !== undefined) {
      const next = nextLink(answer.headers.get('link') ?? cached.link)
      return { value, next, serverTime: answer.serverTime, unchanged: true }
    }
    cache.drop(request)
    const whole = withHeader(request, 'cache-control', 'no-cache')
    return stored(cache, request, await connection.exchange(whole))
  }
}

/** What a success says, or null when its body is not JSON or could not be read. */
export function contentOf(answer: Answered): Readonly<{ value: unknown }> | null {
  const value = answer.body.kind === 'text' ? parseJson(answer.body.text) : undefined
  return value === undefined ? null : { value }
}

export function isSuccess(answer: Answered): boolean {
  return answer.status >= 200 && answer.status <= 299
}

function pageOf(request: HttpRequest, answer: Answered): Page | null {
  if (answer.status === 404 || answer.status === 410) return null
  if (answer.status !== 200) throw answerFault(request, answer)
  const content = contentOf(answer)
  if (content === null) throw badAnswer(request, whyUnreadable(answer))
  const next = nextLink(answer.headers.get('link'))
  return { value: content.value, next, serverTime: answer.serverTime, unchanged: false }
}

function stored(cache: EtagCache, request: HttpRequest, answer: Answered): Page | null {
  const page = pageOf(request, answer)
  const etag = answer.headers.get('etag')
  // A full last page says nothing about a page after it; GitHub answers 304 for it all the same.
  const mayGrow =
    page !== null &&
    page.next === null &&
    Array.isArray(page.value) &&
    page.value.length >= LIMITS.pageSize
  if (page === null || etag === null || mayGrow || answer.body.kind !== 'text') {
    cache.drop(request)
  } else {
    cache.store(request, { etag, link: answer.headers.get('link'), text: answer.body.text })
  }
  return page
}

/** Why a success has no content, for people. */
export function whyUnreadable(answer: Answered): string {
  return answer.body.kind === 'text' ? 'the body is not JSON' : answer.body.reason
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
