// How a request goes over the network: one exchange, and the redirects of a read.

import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import {
  type Body,
  describeRequest,
  type HttpAnswer,
  type HttpRequest,
  isWrite,
} from './http-request.ts'
import { networkFault } from './request-fault.ts'

/**
 * One exchange with the server: sent once, not redirected, at most `LIMITS.httpBodyBytes` read.
 * Faults: github/unreachable when no answer came.
 * @param deadline aborts it, also while the body is being read
 */
async function send(request: HttpRequest, deadline: AbortSignal): Promise<HttpAnswer> {
  let response: Response
  try {
    response = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      body: request.body,
      redirect: 'manual',
      signal: deadline,
    })
  } catch (thrown) {
    throw networkFault(request, thrown)
  }
  const body = await readBody(response, LIMITS.httpBodyBytes, deadline)
  return { status: response.status, headers: response.headers, body }
}

/** Counts while it reads, so a chunked or compressed body is refused before it is held (R§11.3.64). */
async function readBody(
  response: Response,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<Body> {
  if (response.body === null) return { kind: 'text', text: '' }
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  // Cancelling ends a pending read; that fetch does it by itself is not certain once it has resolved.
  const stop = (): void => void reader.cancel().catch(() => undefined)
  deadline.addEventListener('abort', stop, { once: true })
  try {
    const chunks: Uint8Array[] = []
    let size = 0
    for (;;) {
      const step = await reader.read()
      if (deadline.aborted) return { kind: 'unreadable', reason: 'the body did not arrive in time' }
      if (step.done) return { kind: 'text', text: new TextDecoder().decode(Buffer.concat(chunks)) }
      chunks.push(step.value)
      size += step.value.length
      if (size > maxBytes) {
        stop()
        return { kind: 'unreadable', reason: `a body of more than ${maxBytes} bytes` }
      }
    }
  } catch {
    const reason = deadline.aborted ? 'the body did not arrive in time' : 'the body was cut off'
    return { kind: 'unreadable', reason }
  } finally {
    deadline.removeEventListener('abort', stop)
  }
}

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
