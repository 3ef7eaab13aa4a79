import { asFault, type Fault, fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { RateLimit } from '../core/meta.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import {
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
import { type Effect, effectOf, effectOfStatus, explain } from './request-fault.ts'
import { sendFollowing } from './send.ts'

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

  const limitFault = (request: HttpRequest, wait: Wait, effect: Effect): Fault => {
    const spreadMs = deps.random() * LIMITS.rateLimitSpreadMs
    return fault('github/rate-limited', {
      kind: wait.kind,
      until: wait.until,
      untilMs: Math.round(fromTimestamp(wait.until) + spreadMs),
      request: describeRequest(request),
      ...effectOf(request, effect),
    })
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
      throw fault(known.code, { ...known.details, ...effectOf(request, 'none') })
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
