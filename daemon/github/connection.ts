import { asFault, type Fault, fault, type WriteEffect } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { RateLimit } from '../core/meta.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import {
  type Body,
  describeRequest,
  type HttpAnswer,
  type HttpRequest,
  isWrite,
  withHeader,
} from './http-request.ts'
import {
  type GateDeps,
  observeRate,
  openRequestGate,
  recogniseLimit,
  type Wait,
} from './rate-limits.ts'
import { effectOfStatus, explain, networkFault, requestFault } from './request-fault.ts'

export type ConnectionDeps = GateDeps &
  Readonly<{
    /** A number in [0, 1); spreads the moments at which waiting processes start again. */
    random: () => number
    /** Told of every answer: its status, and its rate headers when they are complete. Must not throw. */
    onAnswer: (answer: Readonly<{ status: number; rate: RateLimit | null }>) => void
  }>

export type ConnectionOptions = Readonly<{
  /** Asked at the first request and kept; asked again after a failure or a 401. Faults: token/*. */
  token: () => Promise<string>
  /** From sending to the end of the body, redirects included. */
  timeoutMs: number
  /** What is left of the time the process has, when that is limited. */
  timeLeftMs?: () => number
}>

/** An answer of any status but a limit; `reason` is GitHub's explanation of an error, else empty. */
export type Answered = HttpAnswer & Readonly<{ reason: string; serverTime: number }>

/**
 * Everything each request goes through: the gate, the token, a deadline, redirects, the limits.
 * Faults: github/unreachable, github/bad-answer, github/rate-limited, token/*.
 */
export type Connection = Readonly<{
  exchange: (request: HttpRequest) => Promise<Answered>
  /** GitHub's clock at its last answer; null before the first. */
  serverTime: () => number | null
}>

// Visible ASCII: what RFC 9110 allows in a credential, less than what fetch would refuse with an error
// that shows the value.
const TOKEN = /^[\x21-\x7e]+$/

export function openConnection(deps: ConnectionDeps, options: ConnectionOptions): Connection {
  const gate = openRequestGate(deps)
  const leftMs = options.timeLeftMs ?? (() => Number.MAX_SAFE_INTEGER)
  let lastServerTime: number | null = null
  let token: Promise<string> | null = null

  const limitFault = (request: HttpRequest, wait: Wait, effect: WriteEffect): Fault => {
    const spreadMs = deps.random() * LIMITS.rateLimitSpreadMs
    const { kind, until } = wait
    const untilMs = Math.round(fromTimestamp(until) + spreadMs)
    return requestFault(request, effect, fault('github/rate-limited', { kind, until, untilMs }))
  }

  const currentToken = async (): Promise<string> => {
    token ??= options.token()
    try {
      const value = await token
      if (!TOKEN.test(value)) throw fault('token/malformed')
      return value
    } catch (thrown) {
      token = null
      throw thrown
    }
  }

  /** What is needed before a request; without it nothing is sent, which a write's fault has to say. */
  const admit = async (request: HttpRequest): Promise<string> => {
    try {
      const closedBy = gate.closedBy()
      if (closedBy !== null) throw limitFault(request, closedBy, 'none')
      return await currentToken()
    } catch (thrown) {
      const known = asFault(thrown)
      throw requestFault(request, 'none', known)
    }
  }

  return {
    serverTime: () => lastServerTime,
    exchange: async (request) => {
      const secret = await admit(request)
      // A write is over before its intent's deadline (P§3).
      const longestMs = isWrite(request) ? LIMITS.intentMs : Number.MAX_SAFE_INTEGER
      const answer = await sendFollowing(
        withHeader(request, 'authorization', `Bearer ${secret}`),
        AbortSignal.timeout(Math.max(Math.min(options.timeoutMs, longestMs, leftMs()), 1)),
      )
      const now = deps.clock.now()
      const date = Date.parse(answer.headers.get('date') ?? '')
      if (!Number.isNaN(date)) lastServerTime = date
      const moment = { now, serverTime: Number.isNaN(date) ? now : date }
      deps.onAnswer({ status: answer.status, rate: observeRate(answer.headers, now) })

      if (answer.status === 401) token = null
      const reason = answer.status < 400 ? '' : explain(answer.body, [secret])
      const limit = recogniseLimit(answer.status, answer.headers, reason, moment)
      if (limit === null) return { ...answer, reason, serverTime: moment.serverTime }
      await gate.close(limit)
      throw limitFault(request, limit, effectOfStatus(answer.status))
    },
  }
}

// How a request goes over the network: one exchange, and the redirects of a read.

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
