// Every verb of the control interface, `POST /_control/<verb>` with a JSON object. Who starts the embedded
// GitHub is its operator; there is no other way in, and it listens on loopback only.

import { describeThrown, isFaultOf, reasonOf } from '../daemon/core/fault.ts'
import { requireAccount, windowOf } from './accounts.ts'
import { fieldsOf } from './api-messages.ts'
import * as issues from './control-issues.ts'
import * as repositories from './control-repositories.ts'
import {
  type ArmedRule,
  type FaultRule,
  type Hub,
  LOG_CAPACITY,
  type LoggedRequest,
  type Settings,
} from './hub.ts'
import { refused } from './repositories.ts'
import { ROUTES, routeName } from './routes.ts'
import { saveWorld } from './world.ts'

/** They change the content, which is saved after each. */
const CONTENT_VERBS = {
  createAccount: repositories.createAccount,
  createToken: repositories.createToken,
  revokeToken: repositories.revokeToken,
  createRepository: repositories.createRepository,
  renameRepository: repositories.renameRepository,
  editRepository: repositories.editRepository,
  setRole: repositories.setRole,
  createLabel: repositories.createLabel,
  pushCommit: repositories.pushCommit,
  deleteBranch: repositories.deleteBranch,
  createIssue: issues.createIssue,
  createIssues: issues.createIssues,
  editIssue: issues.editIssue,
  closeIssue: issues.closeIssue,
  reopenIssue: issues.reopenIssue,
  labelIssue: issues.labelIssue,
  unlabelIssue: issues.unlabelIssue,
  commentIssue: issues.commentIssue,
  deleteComment: issues.deleteComment,
  deleteIssue: issues.deleteIssue,
  transferIssue: issues.transferIssue,
  createPull: issues.createPull,
  mergePull: issues.mergePull,
} as const satisfies Record<string, (hub: Hub, params: never) => unknown>

/** They only read, or change the service but not the content. */
const SERVICE_VERBS = {
  readRepository: repositories.readRepository,
  readIssue: issues.readIssue,
  listIssues: issues.listIssues,
  addFault,
  listFaults,
  clearFaults,
  configure,
  readClock,
  setRateLimit,
  readRequests,
  clearRequests,
} as const satisfies Record<string, (hub: Hub, params: never) => unknown>

const VERBS = { ...CONTENT_VERBS, ...SERVICE_VERBS }

type Verbs = typeof VERBS
export type ControlVerb = keyof Verbs
/** What a verb takes besides the hub. */
export type ControlParams<Verb extends ControlVerb> = Parameters<Verbs[Verb]>[1]
export type ControlResult<Verb extends ControlVerb> = Awaited<ReturnType<Verbs[Verb]>>

type ControlOutcome =
  | Readonly<{ kind: 'done'; result: unknown }>
  | Readonly<{ kind: 'refused'; reason: string }>

/** Carries out a verb; a refusal or a fault on the way becomes its reason. */
export async function control(hub: Hub, verb: string, params: unknown): Promise<ControlOutcome> {
  if (!isVerb(verb)) return { kind: 'refused', reason: `there is no verb ${verb}` }
  // Only control-client.ts calls, and the compiler has checked there that the verb takes these parameters.
  const act: (hub: Hub, params: never) => unknown = VERBS[verb]
  try {
    const result = await hub.oneAtATime(async () => {
      const value = await act(hub, fieldsOf(params) as never)
      if (verb in CONTENT_VERBS) saveWorld(hub.root, hub.world)
      return value
    })
    return { kind: 'done', result: result ?? null }
  } catch (thrown) {
    const isOurs = isFaultOf(thrown, 'demo/refused')
    return { kind: 'refused', reason: isOurs ? reasonOf(thrown) : describeThrown(thrown) }
  }
}

function isVerb(name: string): name is ControlVerb {
  return Object.hasOwn(VERBS, name)
}

// What operators do with the service itself: faults, clock, latency, limits, and the log of requests.

/** A rule that could never fire, for its route is not in ROUTES or its pattern is none, is refused. */
function addFault(hub: Hub, rule: FaultRule): Readonly<{ id: string }> {
  const isKnown =
    rule.route === undefined || ROUTES.some((route) => routeName(route) === rule.route)
  if (!isKnown) throw refused(`there is no route "${rule.route}"`)
  if (rule.pattern !== undefined && !isPattern(rule.pattern)) {
    throw refused(`"${rule.pattern}" is no regular expression`)
  }
  const { faults } = hub
  const id = `fault-${faults.nextId}`
  faults.nextId += 1
  faults.armed.push({ id, rule, matched: 0, fired: 0 })
  return { id }
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text).source !== ''
  } catch {
    return false
  }
}

/** Every rule with how often it matched and fired. */
function listFaults(hub: Hub): readonly ArmedRule[] {
  return hub.faults.armed
}

/** One rule, or all. */
function clearFaults(hub: Hub, { id = null }: Readonly<{ id?: string | null }>): void {
  const { armed } = hub.faults
  const kept = id === null ? [] : armed.filter((each) => each.id !== id)
  armed.splice(0, armed.length, ...kept)
}

/** Latency of every API request, and how far GitHub's clock is from the host's; what is not given stays. */
function configure(hub: Hub, settings: Partial<Settings>): Readonly<Settings> {
  return Object.assign(hub.settings, settings)
}

/** GitHub's clock, milliseconds since the epoch. */
function readClock(hub: Hub): Readonly<{ now: number }> {
  return { now: hub.clock.now() }
}

/** Sets what an account has left of its primary rate limit; login null = requests without a token. */
function setRateLimit(
  hub: Hub,
  order: Readonly<{
    login: string | null
    limit?: number
    remaining?: number
    resetInSeconds?: number
  }>,
): void {
  const now = hub.clock.now()
  const accountId = order.login === null ? null : requireAccount(hub.world, order.login).id
  const window = windowOf(hub.limits, accountId, now)
  window.limit = order.limit ?? window.limit
  if (order.remaining !== undefined) window.used = Math.max(0, window.limit - order.remaining)
  if (order.resetInSeconds !== undefined) window.resetAt = now + order.resetInSeconds * 1000
}

type RequestFilter = Readonly<{
  method?: string
  route?: string
  repository?: string
  account?: string
  status?: number
  /** Only what came after this one. */
  afterSequence?: number
}>

type RequestReport = Readonly<{
  entries: readonly LoggedRequest[]
  total: number
  byMethod: Readonly<Record<string, number>>
  byRoute: Readonly<Record<string, number>>
  byRepository: Readonly<Record<string, number>>
  byStatus: Readonly<Record<string, number>>
  /** Whether older entries had to make room since the last clearing. */
  isComplete: boolean
}>

/** API requests since the log was last cleared, with counts. */
function readRequests(hub: Hub, filter: RequestFilter): RequestReport {
  const { log } = hub
  const entries = log.entries.filter((entry) => isMeant(entry, filter))
  const count = (key: (entry: LoggedRequest) => string) => countBy(entries.map(key))
  return {
    entries,
    total: entries.length,
    byMethod: count((entry) => entry.method),
    byRoute: count((entry) => entry.route ?? 'none'),
    byRepository: count((entry) => entry.repository ?? 'none'),
    byStatus: count((entry) => String(entry.status ?? 'none')),
    isComplete: log.entries.length < LOG_CAPACITY,
  }
}

function isMeant(entry: LoggedRequest, filter: RequestFilter): boolean {
  return (
    (filter.method === undefined || entry.method === filter.method) &&
    (filter.route === undefined || entry.route === filter.route) &&
    (filter.repository === undefined || entry.repository === filter.repository.toLowerCase()) &&
    (filter.account === undefined || entry.account === filter.account) &&
    (filter.status === undefined || entry.status === filter.status) &&
    entry.sequence > (filter.afterSequence ?? 0)
  )
}

function countBy(keys: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}

function clearRequests(hub: Hub): void {
  hub.log.entries.splice(0)
}
