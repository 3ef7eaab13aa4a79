import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { describeRequest, type HttpRequest, isWrite } from './http-request.ts'
import { type HttpAnswer, send } from './send.ts'

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]

/**
 * Sends a request; redirects of a read are followed within the same origin, so credentials never
 * leave it (R§5.2). A write's redirect is its answer: a write is sent once, to where it was meant.
 * Faults: github/unreachable, github/bad-answer.
 */
export async function sendFollowing(
  request: HttpRequest,
  deadline: AbortSignal,
): Promise<HttpAnswer> {
  let current = request
  for (let hops = 0; ; hops += 1) {
    const answer = await send(current, deadline)
    if (isWrite(request) || !REDIRECTS.includes(answer.status)) return answer
    if (hops === LIMITS.redirects) throw badRedirect(request, `more than ${hops} redirects`)
    current = { ...current, url: redirectedUrl(request, current.url, answer.headers) }
  }
}

function redirectedUrl(request: HttpRequest, from: string, headers: Headers): string {
  const location = headers.get('location')
  if (location === null || !URL.canParse(location, from)) {
    throw badRedirect(request, 'a redirect to nowhere')
  }
  const target = new URL(location, from)
  if (target.origin !== new URL(from).origin) {
    throw badRedirect(request, 'a redirect to another host, which is not followed')
  }
  return target.href
}

const badRedirect = (request: HttpRequest, reason: string) =>
  fault('github/bad-answer', { request: describeRequest(request), reason })
