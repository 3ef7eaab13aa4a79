// Which fault it is when a request fails, and what became of a write (P§3): by the status of an answer, or
// by the error that came instead of one.

import { type Fault, fault, type WriteEffect, withEffect } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { redact } from '../core/redaction.ts'
import { type Body, describeRequest, type HttpRequest, isWrite } from './http-request.ts'
import { fieldOf, textOf } from './map-answer.ts'

type AnswerCode =
  | 'github/failed'
  | 'github/moved'
  | 'github/not-found'
  | 'github/refused'
  | 'github/bad-answer'
  | 'token/rejected'

type Row = Readonly<{ from: number; to: number; code: AnswerCode; effect: WriteEffect }>

/**
 * What a status means that the caller did not expect; the first row that holds it counts. `effect`:
 * GitHub did not perform what it answered with 3xx or 4xx, except 408 and 429 (P§3). Limits were
 * recognised before (rate-limits.ts).
 */
export const STATUS_FAULTS = [
  { from: 304, to: 304, code: 'github/failed', effect: 'none' },
  { from: 300, to: 399, code: 'github/moved', effect: 'none' },
  { from: 401, to: 401, code: 'token/rejected', effect: 'none' },
  { from: 404, to: 404, code: 'github/not-found', effect: 'none' },
  { from: 408, to: 408, code: 'github/failed', effect: 'unknown' },
  { from: 410, to: 410, code: 'github/not-found', effect: 'none' },
  { from: 429, to: 429, code: 'github/failed', effect: 'unknown' },
  { from: 400, to: 499, code: 'github/refused', effect: 'none' },
  { from: 500, to: 999, code: 'github/failed', effect: 'unknown' },
] as const satisfies readonly Row[]

/** The effect of a write that was answered with this status. */
export function effectOfStatus(status: number): WriteEffect {
  return statusRow(status)?.effect ?? 'unknown'
}

/** The fault of an answer whose status the caller has no use for. */
export function answerFault(
  request: HttpRequest,
  answer: Readonly<{ status: number; reason: string }>,
): Fault {
  const row = statusRow(answer.status)
  const failure = fault(row?.code ?? 'github/bad-answer', {
    request: describeRequest(request),
    what: request.subject,
    status: answer.status,
    reason: row === undefined ? `status ${answer.status}` : answer.reason,
  })
  return requestFault(request, effectOfStatus(answer.status), failure)
}

/** `github/bad-answer`: a success whose content is not what it should be; a write may have been done. */
export function badAnswer(request: HttpRequest, reason: string): Fault {
  const failure = fault('github/bad-answer', { request: describeRequest(request), reason })
  return requestFault(request, 'unknown', failure)
}

/**
 * GitHub's own words about an error on one line: `message`, then those of `errors`.
 * @param secrets never shown, should an answer repeat one
 */
export function explain(body: Body, secrets: readonly string[]): string {
  const words = body.kind === 'text' ? messagesOf(body.text) : []
  const line = redact(words.join(': '), secrets).replaceAll(/\s+/g, ' ').trim()
  if (line === '') return 'no explanation'
  const shown = Array.from(line)
  if (shown.length <= LIMITS.httpReasonCharacters) return line
  return `${shown.slice(0, LIMITS.httpReasonCharacters).join('')}…`
}

function messagesOf(text: string): readonly string[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    // A proxy's page instead of GitHub's JSON; the status says enough.
    return []
  }
  const errors = fieldOf(parsed, 'errors')
  const details = (Array.isArray(errors) ? errors : []).map((each: unknown) =>
    typeof each === 'string' ? each : (textOf(each, 'message') ?? textOf(each, 'code')),
  )
  return [textOf(parsed, 'message'), ...details].filter((word) => word !== null)
}

function statusRow(status: number): Row | undefined {
  const rows: readonly Row[] = STATUS_FAULTS
  return rows.find((row) => status >= row.from && status <= row.to)
}

/**
 * What a request failed with. Of a write the fault says what became of the write (PROTOCOLS, Writes to GitHub), which
 * has no default, so nobody can forget it; a read has no effect, and its fault none.
 */
export function requestFault(request: HttpRequest, effect: WriteEffect, failure: Fault): Fault {
  return isWrite(request) ? withEffect(effect, failure) : failure
}

// Codes of node:dns, node:net, node:tls and undici (its docs, "Errors"). `effect`: a refused connection
// and an unknown name prove that nothing was sent (P§3); all else may have come after the request left.
const NETWORK_ERRORS = {
  ECONNREFUSED: { says: 'the connection was refused', effect: 'none' },
  ENOTFOUND: { says: 'the name of its host is unknown', effect: 'none' },
  EAI_AGAIN: { says: 'the name of its host cannot be looked up now', effect: 'none' },
  ECONNRESET: { says: 'the connection was cut', effect: 'unknown' },
  EPIPE: { says: 'the connection was cut', effect: 'unknown' },
  UND_ERR_SOCKET: { says: 'the connection was closed', effect: 'unknown' },
  ETIMEDOUT: { says: 'the connection timed out', effect: 'unknown' },
  UND_ERR_CONNECT_TIMEOUT: { says: 'no connection came about in time', effect: 'unknown' },
  EHOSTUNREACH: { says: 'there is no route to its host', effect: 'unknown' },
  ENETUNREACH: { says: 'there is no network', effect: 'unknown' },
  CERT_HAS_EXPIRED: { says: 'its certificate has expired', effect: 'unknown' },
  DEPTH_ZERO_SELF_SIGNED_CERT: { says: 'its certificate is not trusted', effect: 'unknown' },
  SELF_SIGNED_CERT_IN_CHAIN: { says: 'its certificate is not trusted', effect: 'unknown' },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { says: 'its certificate is not trusted', effect: 'unknown' },
  ERR_TLS_CERT_ALTNAME_INVALID: { says: 'its certificate is for another host', effect: 'unknown' },
  HPE_INVALID_CONSTANT: { says: 'it does not answer in HTTP', effect: 'unknown' },
  TimeoutError: { says: 'no answer came in time', effect: 'unknown' },
} as const satisfies Record<string, { says: string; effect: WriteEffect }>

/**
 * `github/unreachable` for what fetch threw. The thrown error is not kept as a cause: it may hold the
 * request with its credentials, and its code says it all.
 */
export function networkFault(request: HttpRequest, thrown: unknown): Fault {
  const codes = codesOf(thrown)
  const known = codes.map((code) => errorRow(code)).filter((row) => row !== null)
  const certain = codes.length > 0 && codes.every((code) => errorRow(code)?.effect === 'none')
  const reason = known[0]?.says ?? `a network error (${codes[0] ?? 'without a code'})`
  const failure = fault('github/unreachable', {
    request: describeRequest(request),
    reason,
    ...(codes[0] === undefined ? {} : { code: codes[0] }),
  })
  return requestFault(request, certain ? 'none' : 'unknown', failure)
}

function errorRow(code: string): Readonly<{ says: string; effect: WriteEffect }> | null {
  const rows: Readonly<Record<string, { says: string; effect: WriteEffect }>> = NETWORK_ERRORS
  return Object.hasOwn(rows, code) ? (rows[code] ?? null) : null
}

/**
 * The codes at the root of what fetch threw: fetch wraps the socket's error in a TypeError, and a host
 * with several addresses leaves one error for each.
 */
function codesOf(thrown: unknown, depth = 0): readonly string[] {
  if (typeof thrown !== 'object' || thrown === null || depth > 5) return []
  if ('errors' in thrown && Array.isArray(thrown.errors) && thrown.errors.length > 0) {
    return thrown.errors.flatMap((each) => codesOf(each, depth + 1))
  }
  if ('cause' in thrown && typeof thrown.cause === 'object' && thrown.cause !== null) {
    return codesOf(thrown.cause, depth + 1)
  }
  if ('code' in thrown && typeof thrown.code === 'string') return [thrown.code]
  return 'name' in thrown && typeof thrown.name === 'string' ? [thrown.name] : []
}
