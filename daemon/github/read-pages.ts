// How content is read: one page, through the cache or not, and lists over all their pages.

import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Answered, Connection } from './connection.ts'
import type { EtagCache } from './etag-cache.ts'
import { describeRequest, type HttpRequest, withHeader } from './http-request.ts'
import { answerFault, badAnswer } from './request-fault.ts'

/** The JSON of one GET. */
type Page = Readonly<{
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

/** A list, complete over all its pages. */
export type Listing = Readonly<{
  items: readonly unknown[]
  /** Every page came from the cache. */
  unchanged: boolean
  /** GitHub's clock at the first page: what changed after it may be missing. */
  serverTime: number
}>

/** How far pages may lead. */
export type PageBounds = Readonly<{
  maxPages: number
  /** Every page lies under it. */
  apiBase: string
}>

/**
 * Reads a list to its end. A fault on any page is the fault of the whole: a part is never returned
 * (R§5.4). Faults: github/too-many-pages, github/not-found, those of `read`.
 */
export async function readAllPages(
  read: ReadPage,
  bounds: PageBounds,
  first: HttpRequest,
): Promise<Listing> {
  const items: unknown[] = []
  let unchanged = true
  let serverTime: number | null = null
  let request = first
  for (let page = 1; ; page += 1) {
    const answer = await read(request)
    if (answer === null) throw answerFault(first, { status: 404, reason: '' })
    if (!Array.isArray(answer.value)) throw badAnswer(first, 'a list was expected')
    // Not spread into push: a page may hold more entries than a call may have arguments.
    for (const item of answer.value) items.push(item)
    unchanged &&= answer.unchanged
    serverTime ??= answer.serverTime
    if (answer.next === null) return { items, unchanged, serverTime }
    if (page >= bounds.maxPages) {
      const details = { request: describeRequest(first), pages: bounds.maxPages }
      throw fault('github/too-many-pages', details)
    }
    request = { ...request, url: pageUrl(first, bounds, answer.next) }
  }
}

/** The token goes where a page leads, so that has to be the API (R§5.2). */
function pageUrl(request: HttpRequest, bounds: PageBounds, next: string): string {
  const base = new URL(bounds.apiBase)
  const root = base.pathname.replace(/\/*$/, '/')
  const target = URL.canParse(next) ? new URL(next) : null
  if (target === null || target.origin !== base.origin || !target.pathname.startsWith(root)) {
    throw badAnswer(request, 'its next page lies outside the API')
  }
  return target.href
}

// RFC 8288 as GitHub uses it: `<url>; rel="next", <url>; rel="last"`.

const LINK = /<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^\s",;]+))*)/g
const REL = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i

/** The target of `rel="next"`; no other relation counts (R§5.4). */
export function nextLink(header: string | null): string | null {
  for (const [, target, parameters] of (header ?? '').matchAll(LINK)) {
    const rel = REL.exec(parameters ?? '')
    const names = (rel?.[1] ?? rel?.[2] ?? '').toLowerCase().split(/\s+/)
    if (target !== undefined && names.includes('next')) return target
  }
  return null
}
