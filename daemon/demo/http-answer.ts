import { createHash } from 'node:crypto'
import { accountIdOf, type Viewer } from './access.ts'
import { headerOf, type Incoming } from './api-request.ts'
import type { Hub } from './hub.ts'
import { countRequest, rateHeaders, windowOf } from './rate-limits.ts'
import type { Reply } from './replies.ts'

/** An answer ready for HTTP: headers complete, body a text. */
export type Answer = Readonly<{
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}>

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }

function commonHeaders(hub: Hub): Readonly<Record<string, string>> {
  return {
    Date: new Date(hub.clock.now()).toUTCString(),
    'X-GitHub-Media-Type': 'github.v3; format=json',
  }
}

/**
 * A reply as HTTP has it, with the validator of conditional requests, and 304 when it
 * matches (RFC 9110 §13).
 */
export function finishReply(hub: Hub, incoming: Incoming, reply: Reply): Answer {
  const body = reply.body === undefined ? '' : JSON.stringify(reply.body)
  const headers = { ...commonHeaders(hub), ...(body === '' ? {} : JSON_TYPE), ...reply.headers }
  const isRead = incoming.method === 'GET' || incoming.method === 'HEAD'
  if (!isRead || reply.status !== 200) return { status: reply.status, headers, body }
  const etag = validatorOf(body, reply.headers?.['Link'] ?? '')
  const isUnchanged = matchesValidator(headerOf(incoming, 'if-none-match'), etag)
  // GitHub's 304 has no Link header.
  if (isUnchanged) return { status: 304, headers: { ...commonHeaders(hub), ETag: etag }, body: '' }
  return { status: 200, headers: { ...headers, ETag: etag }, body }
}

function validatorOf(body: string, link: string): string {
  const digest = createHash('sha256').update(body).update('\n').update(link).digest('hex')
  return `W/"${digest}"`
}

function matchesValidator(header: string | null, etag: string): boolean {
  if (header === null) return false
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '')
  return header.split(',').some((tag) => tag.trim() === '*' || bare(tag) === bare(etag))
}

/** An answer that a fault rule dictates, with the headers all answers have; it counts as a request. */
export function dictatedAnswer(hub: Hub, viewer: Viewer, reply: Reply): Answer {
  const window = windowOf(hub.limits, accountIdOf(viewer), hub.clock.now())
  countRequest(window)
  const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {})
  const headers = { ...commonHeaders(hub), ...JSON_TYPE, ...rateHeaders(window), ...reply.headers }
  return { status: reply.status, headers, body }
}
