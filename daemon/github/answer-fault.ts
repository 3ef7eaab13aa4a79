import { type Fault, fault } from '../core/fault.ts'
import type { FaultCode } from '../core/fault-catalogue.ts'
import { LIMITS } from '../core/limits.ts'
import { redact } from '../core/redaction.ts'
import { describeRequest, type HttpRequest } from './http-request.ts'
import { fieldOf, textOf } from './narrow.ts'
import { type Effect, effectOf } from './network-fault.ts'
import type { Body } from './send.ts'

type Row = Readonly<{ from: number; to: number; code: FaultCode; effect: Effect }>

/**
 * What a status means that the caller did not expect; the first row that holds it counts. `effect`:
 * GitHub did not perform what it answered with 3xx or 4xx, except 408 and 429 (P§3). Limits were
 * recognised before (rate-limits.ts).
 */
export const STATUS_FAULTS = [
  { from: 300, to: 399, code: 'github/failed', effect: 'none' },
  { from: 401, to: 401, code: 'token/rejected', effect: 'none' },
  { from: 404, to: 404, code: 'github/not-found', effect: 'none' },
  { from: 408, to: 408, code: 'github/failed', effect: 'unknown' },
  { from: 410, to: 410, code: 'github/not-found', effect: 'none' },
  { from: 429, to: 429, code: 'github/failed', effect: 'unknown' },
  { from: 400, to: 499, code: 'github/refused', effect: 'none' },
  { from: 500, to: 999, code: 'github/failed', effect: 'unknown' },
] as const satisfies readonly Row[]

/** The effect of a write that was answered with this status. */
export function effectOfStatus(status: number): Effect {
  return rowOf(status)?.effect ?? 'unknown'
}

/** The fault of an answer whose status the caller has no use for. */
export function answerFault(
  request: HttpRequest,
  answer: Readonly<{ status: number; reason: string }>,
): Fault {
  const row = rowOf(answer.status)
  return fault(row?.code ?? 'github/bad-answer', {
    request: describeRequest(request),
    what: request.subject,
    status: answer.status,
    reason: row === undefined ? `status ${answer.status}` : answer.reason,
    ...effectOf(request, effectOfStatus(answer.status)),
  })
}

/** `github/bad-answer`: a success whose content is not what it should be; a write may have been done. */
export function badAnswer(request: HttpRequest, reason: string): Fault {
  return fault('github/bad-answer', {
    request: describeRequest(request),
    reason,
    ...effectOf(request, 'unknown'),
  })
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

function rowOf(status: number): Row | undefined {
  const rows: readonly Row[] = STATUS_FAULTS
  return rows.find((row) => status >= row.from && status <= row.to)
}
