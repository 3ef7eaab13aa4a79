// A reply put into HTTP.

import { createHash } from 'node:crypto'
import { headerOf, type Incoming } from './api-request.ts'
import type { Reply } from './replies.ts'
import type { ServerContext } from './server-context.ts'

/** An answer ready for HTTP: headers complete, body a text. */
export type ApiAnswer = Readonly<{
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}>

export const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }

export function commonHeaders(context: ServerContext): Readonly<Record<string, string>> {
  return {
    Date: new Date(context.clock.now()).toUTCString(),
    'X-GitHub-Media-Type': 'github.v3; format=json',
  }
}

/**
 * A reply as HTTP has it, with the validator of conditional requests, and 304 when it
 * matches (RFC 9110 §13).
 */
export function finishReply(context: ServerContext, incoming: Incoming, reply: Reply): ApiAnswer {
  const body = reply.body === undefined ? '' : JSON.stringify(reply.body)
  const headers = { ...commonHeaders(context), ...(body === '' ? {} : JSON_TYPE), ...reply.headers }
  const isRead = incoming.method === 'GET' || incoming.method === 'HEAD'
  if (!isRead || reply.status !== 200) return { status: reply.status, headers, body }
  const etag = validatorOf(body, reply.headers?.['Link'] ?? '')
  const isUnchanged = matchesValidator(headerOf(incoming, 'if-none-match'), etag)
  // GitHub's 304 has no Link header.
  if (isUnchanged)
    return { status: 304, headers: { ...commonHeaders(context), ETag: etag }, body: '' }
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

/** What goes back: an answer, perhaps broken off after `cutAfter` bytes; nothing ever; or a reset connection. */
export type Outgoing =
  | Readonly<{ kind: 'answer'; answer: ApiAnswer; cutAfter?: number }>
  | Readonly<{ kind: 'hang' }>
  | Readonly<{ kind: 'reset' }>
