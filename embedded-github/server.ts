// The embedded GitHub as a server on loopback.

import { setMaxListeners } from 'node:events'
import { createServer, type Server } from 'node:http'
import { describeThrown, fault } from '../daemon/core/fault.ts'
import type { Clock, Log } from '../daemon/core/ports.ts'
import { DEFAULT_ACCOUNTS, ensureAccount } from './accounts.ts'
import { type Control, connectControl } from './control-client.ts'
import { sendAnswer } from './http-wire.ts'
import { createOneAtATime } from './one-at-a-time.ts'
import { serve } from './serve-request.ts'
import type { ServerContext, Settings } from './server-context.ts'
import type { GitHubState } from './state.ts'
import { loadState, saveState } from './state-file.ts'

const HOST = '127.0.0.1'

export type EmbeddedGitHub = Readonly<{
  /** The API's base address; also where its pages would be. */
  url: string
  /** Acts as operator; the same over HTTP as from another process. */
  control: Control
  /** Ends all connections, also those that hang. */
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
  const state = openState(options)
  const server = createServer()
  const port = await listen(server, options.port ?? 0)
  const context = openContext(options, state, `http://${HOST}:${port}`, closing.signal)
  server.on('request', (request, response) => {
    serve(context, request, response).catch((thrown: unknown) => {
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
    // Changes under way are in the file before the server counts as closed.
    await context.oneAtATime(() => undefined)
  }
  return { url: context.url, control: connectControl(context.url), close }
}

function listen(server: Server, port: number): Promise<number> {
  // Clients keep connections; one that they are about to use again must not end at that moment.
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

function openState(options: EmbeddedGitHubOptions): GitHubState {
  const state = loadState(options.root)
  for (const login of DEFAULT_ACCOUNTS) ensureAccount(state, login, hostClock(options).now())
  saveState(options.root, state)
  return state
}

const hostClock = (options: EmbeddedGitHubOptions): Pick<Clock, 'now'> =>
  options.clock ?? { now: () => Date.now() }

function openContext(
  options: EmbeddedGitHubOptions,
  state: GitHubState,
  url: string,
  closing: AbortSignal,
): ServerContext {
  const settings: Settings = { latencyMs: 0, clockOffsetMs: 0 }
  const clock = { now: () => hostClock(options).now() + settings.clockOffsetMs }
  return {
    root: options.root,
    url,
    state,
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
