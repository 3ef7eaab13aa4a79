// What operators do with the service itself: faults, clock, latency, limits, and the log of requests.

import { requireAccount } from './accounts.ts'
import { type ArmedRule, armFault, disarmFaults, type FaultRule } from './fault-rules.ts'
import type { Hub, Settings } from './hub.ts'
import { windowOf } from './rate-limits.ts'
import { refused } from './repositories.ts'
import { type RequestFilter, type RequestReport, reportRequests } from './request-log.ts'
import { ROUTES, routeName } from './routes.ts'

/** A rule that could never fire, for its route is not in ROUTES or its pattern is none, is refused. */
export function addFault(hub: Hub, rule: FaultRule): Readonly<{ id: string }> {
  const isKnown =
    rule.route === undefined || ROUTES.some((route) => routeName(route) === rule.route)
  if (!isKnown) throw refused(`there is no route "${rule.route}"`)
  if (rule.pattern !== undefined && !isPattern(rule.pattern)) {
    throw refused(`"${rule.pattern}" is no regular expression`)
  }
  return { id: armFault(hub.faults, rule) }
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text).source !== ''
  } catch {
    return false
  }
}

/** Every rule with how often it matched and fired. */
export function listFaults(hub: Hub): readonly ArmedRule[] {
  return hub.faults.armed
}

/** One rule, or all. */
export function clearFaults(hub: Hub, { id = null }: Readonly<{ id?: string | null }>): void {
  disarmFaults(hub.faults, id)
}

/** Latency of every API request, and how far GitHub's clock is from the host's; what is not given stays. */
export function configure(hub: Hub, settings: Partial<Settings>): Readonly<Settings> {
  return Object.assign(hub.settings, settings)
}

/** GitHub's clock, milliseconds since the epoch. */
export function readClock(hub: Hub): Readonly<{ now: number }> {
  return { now: hub.clock.now() }
}

/** Sets what an account has left of its primary rate limit; login null = requests without a token. */
export function setRateLimit(
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

/** API requests since the log was last cleared, with counts. */
export function readRequests(hub: Hub, filter: RequestFilter): RequestReport {
  return reportRequests(hub.log, filter)
}

export function clearRequests(hub: Hub): void {
  hub.log.entries.splice(0)
}
