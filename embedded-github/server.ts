// The embedded GitHub as a server on loopback, and the way of each request through it.

import { setMaxListeners } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeThrown, fault } from '../daemon/core/fault.ts'
import type { Clock, Log } from '../daemon/core/ports.ts'
import { authenticate, DEFAULT_ACCOUNTS, ensureAccount, type Viewer } from './accounts.ts'
import {
  type ApiAnswer,
  answerApi,
  execute,
  finishReply,
  namedPath,
  type Outgoing,
} from './api-answer.ts'
import { headerOf, type Incoming, tooLarge } from './api-messages.ts'
import { control } from './control.ts'
import { type Control, connectControl } from './control-client.ts'
import {
  createOneAtATime,
  type FaultRule,
  type Hub,
  hide,
  type LoggedRequest,
  logRequest,
  type Settings,
  takeFault,
} from './hub.ts'
import { type Match, matchRoute, routeName } from './routes.ts'
import { loadWorld, saveWorld, type World } from './world.ts'

const HOST = '127.0.0.1'
const MAX_API_BODY_BYTES = 1024 * 1024
const MAX_CONTROL_BODY_BYTES = 64 * 1024 * 1024
const CONTROL_PREFIX = '/_control/'
/** Where GitHub Enterprise Server has its API; both roots answer. */
const ENTERPRISE_PREFIX = '/api/v3'

export type EmbeddedGitHub = Readonly<{
  /** The API's base address; also where its pages would be. */
  url: string
  /** Acts as operator; the same over HTTP as from another process. */
  control: Control
  /** Ends all connections, also those left hanging. */
  close(): Promise<void>
}>

export type EmbeddedGitHubOptions = Readonly<{
  /** `git/` and `github.json` lie here; a server started on the same root again goes on where it was. */
  root: string
  /** 0 = any free one. */
  port?: number
  clock?: Pick<Clock, 'now'>
  log?: Pick<Log, 'error'>
}>

/**
 * Starts an embedded GitHub on loopback. `automation-bot` and `maintainer` have accounts from the start,
 * without tokens. Faults: demo/refused when the port or what lies in the root cannot be used.
 */
export async function startEmbeddedGitHub(options: EmbeddedGitHubOptions): Promise<EmbeddedGitHub> {
  const closing = new AbortController()
  // Each answer that is held back listens to it, and any number may be.
  setMaxListeners(0, closing.signal)
  const world = openWorld(options)
  const server = createServer()
  const port = await listen(server, options.port ?? 0)
  const hub = openHub(options, world, `http://${HOST}:${port}`, closing.signal)
  server.on('request', (request, response) => {
    serve(hub, request, response).catch((thrown: unknown) => {
      if (closing.signal.aborted) return
      options.log?.error('a request could not be served', { reason: describeThrown(thrown) })
      if (response.headersSent) response.destroy()
      else sendAnswer(response, { status: 500, headers: {}, body: '{"message":"Server Error"}' })
    })
  })
  const close = async (): Promise<void> => {
    closing.abort()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await closed
    // What was under way is in the file before anybody looks at it.
    await hub.oneAtATime(() => undefined)
  }
  return { url: hub.url, control: connectControl(hub.url), close }
}

function listen(server: Server, port: number): Promise<number> {
  // Clients keep connections; one that they are about to use again must not end under their hands.
  server.keepAliveTimeout = 60_000
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(fault('demo/refused', { reason: `port ${port} cannot be used` }, cause)),
    )
    server.listen(port, HOST, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

function openWorld(options: EmbeddedGitHubOptions): World {
  const world = loadWorld(options.root)
  for (const login of DEFAULT_ACCOUNTS) ensureAccount(world, login, hostClock(options).now())
  saveWorld(options.root, world)
  return world
}

const hostClock = (options: EmbeddedGitHubOptions): Pick<Clock, 'now'> =>
  options.clock ?? { now: () => Date.now() }

function openHub(
  options: EmbeddedGitHubOptions,
  world: World,
  url: string,
  closing: AbortSignal,
): Hub {
  const settings: Settings = { latencyMs: 0, clockOffsetMs: 0 }
  const clock = { now: () => hostClock(options).now() + settings.clockOffsetMs }
  return {
    root: options.root,
    url,
    world,
    clock,
    settings,
    limits: new Map(),
    lag: [],
    faults: { nextId: 1, armed: [] },
    log: { nextSequence: 1, entries: [] },
    comparisons: new Map(),
    oneAtATime: createOneAtATime(),
    closing,
  }
}

async function serve(hub: Hub, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, sentPath = '/', query = ''] = /^([^?]*)\??(.*)$/s.exec(request.url ?? '/') ?? []
  const method = request.method ?? 'GET'
  if (sentPath.startsWith(CONTROL_PREFIX)) {
    await serveControl(hub, sentPath.slice(CONTROL_PREFIX.length), request, response)
    return
  }
  const prefix = sentPath.startsWith(`${ENTERPRISE_PREFIX}/`) ? ENTERPRISE_PREFIX : ''
  const path = namedPath(hub, sentPath.slice(prefix.length))
  const body = await readBody(request, MAX_API_BODY_BYTES)
  const incoming = { method, path, query, prefix, headers: request.headers }
  if (body === null) {
    sendAnswer(response, finishReply(hub, { ...incoming, body: Buffer.alloc(0) }, tooLarge()))
    return
  }
  sendOutgoing(response, await exchange(hub, { ...incoming, body }, sentPath))
}

/** JSON only: a page in a browser cannot send that here without being asked for permission first. */
async function serveControl(
  hub: Hub,
  verb: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request, MAX_CONTROL_BODY_BYTES)
  const isJson = request.headers['content-type'] === 'application/json'
  const outcome =
    body === null || !isJson || request.method !== 'POST'
      ? { kind: 'refused' as const, reason: 'send a JSON object by POST' }
      : await control(hub, verb, JSON.parse(body.toString('utf8')))
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
async function exchange(hub: Hub, incoming: Incoming, sentPath: string): Promise<Outgoing> {
  const match = matchRoute(incoming.method, incoming.path)
  const viewer = authenticate(hub, incoming)
  const entry = noteRequest(hub, incoming, sentPath, match)
  entry.account = viewer.kind === 'known' ? viewer.account.login : null
  const armed = takeFault(hub.faults, entry)
  if (armed !== null) entry.faults.push(armed.id)
  const waitMs = hub.settings.latencyMs + (armed?.rule.delayMs ?? 0)
  // Ends at once when the server closes.
  if (waitMs > 0) await sleep(waitMs, undefined, { signal: hub.closing })
  const rule = armed?.rule ?? NO_FAULT
  const perform = () => performRequest(hub, incoming, match, viewer, rule)
  const outgoing = await execute({ hub, viewer, perform }, rule.action)
  if (outgoing.kind === 'answer') entry.status = outgoing.answer.status
  return outgoing
}

function noteRequest(
  hub: Hub,
  incoming: Incoming,
  path: string,
  match: Match | null,
): LoggedRequest {
  const { owner, repo } = match?.params ?? {}
  return logRequest(hub.log, {
    method: incoming.method,
    path,
    query: incoming.query,
    route: match === null ? null : routeName(match.route),
    repository: owner === undefined ? null : `${owner}/${repo}`.toLowerCase(),
    isConditional: headerOf(incoming, 'if-none-match') !== null,
    at: hub.clock.now(),
  })
}

/** Writes run one after another, and are in the file before they are answered. */
async function performRequest(
  hub: Hub,
  incoming: Incoming,
  match: Match | null,
  viewer: Viewer,
  { action, lag: given }: FaultRule,
): Promise<ApiAnswer> {
  if (incoming.method === 'GET' || incoming.method === 'HEAD') {
    return answerApi(hub, incoming, match, viewer)
  }
  return hub.oneAtATime(async () => {
    const before = hub.world.nextId
    const answer = await answerApi(hub, incoming, match, viewer)
    const lag = given ?? (action.kind === 'lag' ? action : null)
    if (lag !== null) hide(hub.lag, before, hub.world.nextId, lag, hub.clock.now())
    saveWorld(hub.root, hub.world)
    return answer
  })
}

/** The whole body of a request; null when it is larger than `maxBytes`, of which no more is then kept. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let size = 0
  // Without an encoding set, node:http gives bytes.
  const bodyChunks: AsyncIterable<Buffer> = request
  for await (const bytes of bodyChunks) {
    size += bytes.length
    if (size <= maxBytes) chunks.push(bytes)
  }
  return size <= maxBytes ? Buffer.concat(chunks) : null
}

/** Puts what was decided on the wire. A connection left hanging ends with the client or the server. */
function sendOutgoing(response: ServerResponse, outgoing: Outgoing): void {
  switch (outgoing.kind) {
    case 'answer':
      sendAnswer(response, outgoing.answer, outgoing.cutAfter ?? null)
      return
    case 'reset':
      response.socket?.resetAndDestroy()
      return
    case 'hang':
  }
}

/** @param cutAfter break the connection after so many bytes of the body; null = send all of it */
function sendAnswer(
  response: ServerResponse,
  answer: ApiAnswer,
  cutAfter: number | null = null,
): void {
  const body = Buffer.from(answer.body)
  const hasBody = answer.status !== 204 && answer.status !== 304
  // The date is GitHub's clock, not the host's.
  response.sendDate = false
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(hasBody ? { 'Content-Length': String(body.length) } : {}),
  })
  if (cutAfter === null) response.end(hasBody ? body : undefined)
  else response.write(body.subarray(0, cutAfter), () => response.destroy())
}
