// What a scripted fault makes of an answer.

import { accountIdOf, type Viewer } from './access.ts'
import { type ApiAnswer, commonHeaders, JSON_TYPE, type Outgoing } from './http-answer.ts'
import { countRequest, rateHeaders, windowOf } from './rate-limits.ts'
import { type Reply, rateLimited, secondaryLimited } from './replies.ts'
import type { ServerContext } from './server-context.ts'
import type { FaultAction } from './test-faults.ts'
import { seconds } from './times.ts'

/** An answer that a fault rule dictates, with the headers all answers have; it counts as a request. */
function dictatedAnswer(context: ServerContext, viewer: Viewer, reply: Reply): ApiAnswer {
  const window = windowOf(context.limits, accountIdOf(viewer), context.clock.now())
  countRequest(window)
  const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {})
  const headers = {
    ...commonHeaders(context),
    ...JSON_TYPE,
    ...rateHeaders(window),
    ...reply.headers,
  }
  return { status: reply.status, headers, body }
}

/** A request about to be treated. `perform` has its effect and gives its true answer. */
type Situation = Readonly<{
  context: ServerContext
  viewer: Viewer
  perform: () => Promise<ApiAnswer>
}>

const HTML =
  '<!DOCTYPE html><html><head><title>Unicorn! &middot; GitHub</title></head><body><p>This page is taking too long to load.</p></body></html>\n'

/** Lets a scripted fault happen to a request. */
export async function execute(situation: Situation, action: FaultAction): Promise<Outgoing> {
  const { perform } = situation
  switch (action.kind) {
    case 'delay':
    case 'lag':
      return answered(await perform())
    case 'alter':
      return answered(altered(await perform(), action.fields))
    case 'truncate':
      return truncated(await perform(), action)
    case 'hang':
      if (action.effect === true) await perform()
      return { kind: 'hang' }
    case 'reset':
      if (action.effect) await perform()
      return { kind: 'reset' }
    case 'answer':
    case 'html':
      if (action.effect === true) await perform()
      return answered(dictated(situation, action))
    default:
      return answered(limited(situation, action))
  }
}

const answered = (answer: ApiAnswer): Outgoing => ({ kind: 'answer', answer })

type Page = Extract<FaultAction, { kind: 'answer' | 'html' }>
type Limit = Extract<FaultAction, { kind: 'primary-limit' | 'secondary-limit' }>

function dictated({ context, viewer }: Situation, action: Page): ApiAnswer {
  if (action.kind === 'answer') {
    const { status, body = { message: 'Server Error' }, headers = {} } = action
    return dictatedAnswer(context, viewer, { status, body, headers })
  }
  const headers = { 'Content-Type': 'text/html; charset=utf-8' }
  return dictatedAnswer(context, viewer, { status: action.status ?? 502, body: HTML, headers })
}

function limited({ context, viewer }: Situation, action: Limit): ApiAnswer {
  if (action.kind === 'primary-limit') {
    const reset = seconds(context.clock.now()) + action.resetInSeconds
    const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(reset) }
    return dictatedAnswer(context, viewer, { ...rateLimited(accountIdOf(viewer)), headers })
  }
  const { status = 403, retryAfterSeconds: wait } = action
  const headers = wait === undefined ? {} : { 'Retry-After': String(wait) }
  return dictatedAnswer(context, viewer, { ...secondaryLimited(status), headers })
}

/** Fields laid over the object, or over each object of a list; no validator, for it would vouch for the true answer. */
function altered(answer: ApiAnswer, fields: Readonly<Record<string, unknown>>): ApiAnswer {
  if (answer.body === '') return answer
  const found: unknown = JSON.parse(answer.body)
  const lay = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? { ...value, ...fields } : value
  const { ETag: _, ...headers } = answer.headers
  return {
    ...answer,
    headers,
    body: JSON.stringify(Array.isArray(found) ? found.map(lay) : lay(found)),
  }
}

function truncated(
  answer: ApiAnswer,
  { bytes, cut = false }: Readonly<{ bytes?: number; cut?: boolean }>,
): Outgoing {
  const whole = Buffer.from(answer.body)
  const retained = bytes ?? Math.floor(whole.length / 2)
  if (cut) return { kind: 'answer', answer, cutAfter: retained }
  return answered({ ...answer, body: whole.subarray(0, retained).toString('utf8') })
}
