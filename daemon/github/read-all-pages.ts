import { fault } from '../core/fault.ts'
import { answerFault, badAnswer } from './answer-fault.ts'
import { describeRequest, type HttpRequest } from './http-request.ts'
import type { ReadPage } from './read-page.ts'

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
