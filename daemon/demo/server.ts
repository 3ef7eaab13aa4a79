import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { describeThrown, fault } from '../core/fault.ts'
import type { Clock, Log } from '../core/ports.ts'
import { DEFAULT_ACCOUNTS, ensureAccount } from './accounts.ts'
import { namedPath } from './api-answer.ts'
import { control } from './control.ts'
import { type Control, connectControl } from './control-client.ts'
import { exchange } from './exchange.ts'
import { noFaults } from './fault-rules.ts'
import { finishReply } from './http-answer.ts'
import type { Hub, Settings } from './hub.ts'
import { createOneAtATime } from './one-at-a-time.ts'
import { readBody } from './read-body.ts'
import { tooLarge } from './replies.ts'
import { emptyLog } from './request-log.ts'
import { sendAnswer, sendOutgoing } from './send-outgoing.ts'
import type { World } from './world.ts'
import { loadWorld, saveWorld } from './world-file.ts'

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
    faults: noFaults(),
    log: emptyLog(),
    comparisons: new Map(),
    oneAtATime: createOneAtATime(),
    closing,
  }
}

async function serve(hub: Hub, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [sentPath = '/', query = ''] = splitOnce(request.url ?? '/', '?')
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

function splitOnce(text: string, at: string): readonly string[] {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}
