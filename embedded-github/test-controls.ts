// What tests do with the service itself: faults, clock, latency, limits, and the log of requests.

import { requireAccount } from './accounts.ts'
import { windowOf } from './rate-limits.ts'
import { refused } from './refused.ts'
import { ROUTES, routeName } from './routes.ts'
import type { ServerContext, Settings } from './server-context.ts'
import type { ArmedRule, FaultRule } from './test-faults.ts'
import { LOG_CAPACITY, type LoggedRequest } from './test-request-log.ts'

/** A rule that could never fire, for its route is not in ROUTES or its pattern is none, is refused. */
export function addFault(context: ServerContext, rule: FaultRule): Readonly<{ id: string }> {
  const isKnown =
    rule.route === undefined || ROUTES.some((route) => routeName(route) === rule.route)
  if (!isKnown) throw refused(`there is no route "${rule.route}"`)
  if (rule.pattern !== undefined && !isPattern(rule.pattern)) {
    throw refused(`"${rule.pattern}" is no regular expression`)
  }
  const { faults } = context
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
export function listFaults(context: ServerContext): readonly ArmedRule[] {
  return context.faults.armed
}

/** One rule, or all. */
export function clearFaults(
  context: ServerContext,
  { id = null }: Readonly<{ id?: string | null }>,
): void {
  const { armed } = context.faults
  const retained = id === null ? [] : armed.filter((each) => each.id !== id)
  armed.splice(0, armed.length, ...retained)
}

/** Latency of every API request, and how far GitHub's clock is from the host's; what is not given stays. */
export function configure(context: ServerContext, settings: Partial<Settings>): Readonly<Settings> {
  return Object.assign(context.settings, settings)
}

/** GitHub's clock, milliseconds since the epoch. */
export function readClock(context: ServerContext): Readonly<{ now: number }> {
  return { now: context.clock.now() }
}

/** Sets what remains of the primary rate limit of an account; login null = requests without a token. */
export function setRateLimit(
  context: ServerContext,
  order: Readonly<{
    login: string | null
    limit?: number
    remaining?: number
    resetInSeconds?: number
  }>,
): void {
  const now = context.clock.now()
  const accountId = order.login === null ? null : requireAccount(context.state, order.login).id
  const window = windowOf(context.limits, accountId, now)
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
export function readRequests(context: ServerContext, filter: RequestFilter): RequestReport {
  const { log } = context
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

export function clearRequests(context: ServerContext): void {
  context.log.entries.splice(0)
}
