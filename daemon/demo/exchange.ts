import { setTimeout as sleep } from 'node:timers/promises'
import { authenticate, type Viewer } from './access.ts'
import { answerApi } from './api-answer.ts'
import { headerOf, type Incoming } from './api-request.ts'
import { carryOut, type Outgoing } from './fault-actions.ts'
import { type FaultAction, takeFault } from './fault-rules.ts'
import type { Answer } from './http-answer.ts'
import type { Hub } from './hub.ts'
import { type LoggedRequest, logRequest } from './request-log.ts'
import { type Match, matchRoute } from './route-match.ts'
import { routeName } from './routes.ts'
import { hide } from './visibility-lag.ts'
import { saveWorld } from './world-file.ts'

const NO_FAULT: FaultAction = { kind: 'delay' }

/**
 * Treats one API request, from its arrival to what goes back, with the faults that tests scripted.
 * @param sentPath the path as the client sent it, for the log
 */
export async function exchange(hub: Hub, incoming: Incoming, sentPath: string): Promise<Outgoing> {
  const match = matchRoute(incoming.method, incoming.path)
  const viewer = authenticate(hub, incoming)
  const entry = noteRequest(hub, incoming, sentPath, match)
  entry.account = viewer.kind === 'known' ? viewer.account.login : null
  const armed = takeFault(hub.faults, entry)
  if (armed !== null) entry.faults.push(armed.id)
  await pause(hub, hub.settings.latencyMs + (armed?.rule.delayMs ?? 0))
  const action = armed?.rule.action ?? NO_FAULT
  const perform = () => performRequest(hub, incoming, match, viewer, action)
  const outgoing = await carryOut({ hub, viewer, perform }, action)
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
  action: FaultAction,
): Promise<Answer> {
  if (incoming.method === 'GET' || incoming.method === 'HEAD') {
    return answerApi(hub, incoming, match, viewer)
  }
  return hub.oneAtATime(async () => {
    const before = hub.world.nextId
    const answer = await answerApi(hub, incoming, match, viewer)
    if (action.kind === 'lag') hide(hub.lag, before, hub.world.nextId, action, hub.clock.now())
    saveWorld(hub.root, hub.world)
    return answer
  })
}

/** Ends at once when the server closes. */
async function pause(hub: Hub, ms: number): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal: hub.closing })
}
