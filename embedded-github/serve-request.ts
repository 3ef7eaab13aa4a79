// The way of each request through the server.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { authenticate, type Viewer } from './access.ts'
import { answerApi, namedPath } from './answer-api.ts'
import { headerOf, type Incoming } from './api-request.ts'
import { control } from './control.ts'
import { type ApiAnswer, finishReply, type Outgoing } from './http-answer.ts'
import { readBody, sendAnswer, sendOutgoing } from './http-wire.ts'
import { type Match, matchRoute } from './match-route.ts'
import { tooLarge } from './replies.ts'
import { routeName } from './routes.ts'
import type { ServerContext } from './server-context.ts'
import { saveState } from './state-file.ts'
import { execute } from './test-fault-answers.ts'
import { type FaultRule, takeFault } from './test-faults.ts'
import { hide } from './test-read-lag.ts'
import { type LoggedRequest, logRequest } from './test-request-log.ts'

const MAX_API_BODY_BYTES = 1024 * 1024
const MAX_CONTROL_BODY_BYTES = 64 * 1024 * 1024
const CONTROL_PREFIX = '/_control/'

/** Where GitHub Enterprise Server has its API; both roots answer. */
const ENTERPRISE_PREFIX = '/api/v3'

export async function serve(
  context: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [, sentPath = '/', query = ''] = /^([^?]*)\??(.*)$/s.exec(request.url ?? '/') ?? []
  const method = request.method ?? 'GET'
  if (sentPath.startsWith(CONTROL_PREFIX)) {
    await serveControl(context, sentPath.slice(CONTROL_PREFIX.length), request, response)
    return
  }
  const prefix = sentPath.startsWith(`${ENTERPRISE_PREFIX}/`) ? ENTERPRISE_PREFIX : ''
  const path = namedPath(context, sentPath.slice(prefix.length))
  const body = await readBody(request, MAX_API_BODY_BYTES)
  const incoming = { method, path, query, prefix, headers: request.headers }
  if (body === null) {
    sendAnswer(response, finishReply(context, { ...incoming, body: Buffer.alloc(0) }, tooLarge()))
    return
  }
  sendOutgoing(response, await exchange(context, { ...incoming, body }, sentPath))
}

/** JSON only: a page in a browser cannot send that here without being asked for permission first. */
async function serveControl(
  context: ServerContext,
  verb: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request, MAX_CONTROL_BODY_BYTES)
  const isJson = request.headers['content-type'] === 'application/json'
  const outcome =
    body === null || !isJson || request.method !== 'POST'
      ? { kind: 'refused' as const, reason: 'send a JSON object by POST' }
      : await control(context, verb, JSON.parse(body.toString('utf8')))
  const isDone = outcome.kind === 'done'
  sendAnswer(response, {
    status: isDone ? 200 : 422,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: JSON.stringify(isDone ? { result: outcome.result } : { error: outcome.reason }),
  })
}

const NO_FAULT: FaultRule = { action: { kind: 'delay' } }

/**
 * Treats one API request, from its arrival to what goes back, with the faults that tests scripted.
 * @param sentPath the path as the client sent it, for the log
 */
async function exchange(
  context: ServerContext,
  incoming: Incoming,
  sentPath: string,
): Promise<Outgoing> {
  const match = matchRoute(incoming.method, incoming.path)
  const viewer = authenticate(context, incoming)
  const entry = noteRequest(context, incoming, sentPath, match)
  entry.account = viewer.kind === 'known' ? viewer.account.login : null
  const armed = takeFault(context.faults, entry)
  if (armed !== null) entry.faults.push(armed.id)
  const waitMs = context.settings.latencyMs + (armed?.rule.delayMs ?? 0)
  // Ends at once when the server closes.
  if (waitMs > 0) await sleep(waitMs, undefined, { signal: context.closing })
  const rule = armed?.rule ?? NO_FAULT
  const perform = () => performRequest(context, incoming, match, viewer, rule)
  const outgoing = await execute({ context, viewer, perform }, rule.action)
  if (outgoing.kind === 'answer') entry.status = outgoing.answer.status
  return outgoing
}

function noteRequest(
  context: ServerContext,
  incoming: Incoming,
  path: string,
  match: Match | null,
): LoggedRequest {
  const { owner, repo } = match?.params ?? {}
  return logRequest(context.log, {
    method: incoming.method,
    path,
    query: incoming.query,
    route: match === null ? null : routeName(match.route),
    repository: owner === undefined ? null : `${owner}/${repo}`.toLowerCase(),
    isConditional: headerOf(incoming, 'if-none-match') !== null,
    at: context.clock.now(),
  })
}

/** Writes run one after another, and are in the file before they are answered. */
async function performRequest(
  context: ServerContext,
  incoming: Incoming,
  match: Match | null,
  viewer: Viewer,
  { action, lag: given }: FaultRule,
): Promise<ApiAnswer> {
  if (incoming.method === 'GET' || incoming.method === 'HEAD') {
    return answerApi(context, incoming, match, viewer)
  }
  return context.oneAtATime(async () => {
    const before = context.state.nextId
    const answer = await answerApi(context, incoming, match, viewer)
    const lag = given ?? (action.kind === 'lag' ? action : null)
    if (lag !== null) hide(context.lag, before, context.state.nextId, lag, context.clock.now())
    saveState(context.root, context.state)
    return answer
  })
}
