import { accountIdOf, type Viewer } from './access.ts'
import type { FaultAction } from './fault-rules.ts'
import { seconds } from './github-time.ts'
import { type Answer, dictatedAnswer } from './http-answer.ts'
import type { Hub } from './hub.ts'
import { rateLimited, secondaryLimited } from './replies.ts'

/** What goes back: an answer, perhaps broken off after `cutAfter` bytes; nothing ever; or a reset connection. */
export type Outgoing =
  | Readonly<{ kind: 'answer'; answer: Answer; cutAfter?: number }>
  | Readonly<{ kind: 'hang' }>
  | Readonly<{ kind: 'reset' }>

/** A request about to be treated. `perform` has its effect and gives its true answer. */
export type Situation = Readonly<{ hub: Hub; viewer: Viewer; perform: () => Promise<Answer> }>

const HTML =
  '<!DOCTYPE html><html><head><title>Unicorn! &middot; GitHub</title></head><body><p>This page is taking too long to load.</p></body></html>\n'

/** Lets a scripted fault happen to a request. */
export async function carryOut(situation: Situation, action: FaultAction): Promise<Outgoing> {
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

const answered = (answer: Answer): Outgoing => ({ kind: 'answer', answer })

type Page = Extract<FaultAction, { kind: 'answer' | 'html' }>
type Limit = Extract<FaultAction, { kind: 'primary-limit' | 'secondary-limit' }>

function dictated({ hub, viewer }: Situation, action: Page): Answer {
  if (action.kind === 'answer') {
    const { status, body = { message: 'Server Error' }, headers = {} } = action
    return dictatedAnswer(hub, viewer, { status, body, headers })
  }
  const headers = { 'Content-Type': 'text/html; charset=utf-8' }
  return dictatedAnswer(hub, viewer, { status: action.status ?? 502, body: HTML, headers })
}

function limited({ hub, viewer }: Situation, action: Limit): Answer {
  if (action.kind === 'primary-limit') {
    const reset = seconds(hub.clock.now()) + action.resetInSeconds
    const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(reset) }
    return dictatedAnswer(hub, viewer, { ...rateLimited(accountIdOf(viewer)), headers })
  }
  const { status = 403, retryAfterSeconds: wait } = action
  const headers = wait === undefined ? {} : { 'Retry-After': String(wait) }
  return dictatedAnswer(hub, viewer, { ...secondaryLimited(status), headers })
}

/** Fields laid over the object, or over each object of a list; no validator, for it would vouch for the true answer. */
function altered(answer: Answer, fields: Readonly<Record<string, unknown>>): Answer {
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
  answer: Answer,
  { bytes, cut = false }: Readonly<{ bytes?: number; cut?: boolean }>,
): Outgoing {
  const whole = Buffer.from(answer.body)
  const kept = bytes ?? Math.floor(whole.length / 2)
  if (cut) return { kind: 'answer', answer, cutAfter: kept }
  return answered({ ...answer, body: whole.subarray(0, kept).toString('utf8') })
}
