// Faults that tests script: a rule names requests, which of them it takes, and what goes wrong then.

import type { LagLength } from './test-read-lag.ts'

/**
 * What happens to a request. "Effect" is what the request would have done: a comment made, an issue
 * closed. Everything that ends a request is exclusive; `delayMs` of the rule goes with any of it.
 */
export type FaultAction =
  /** The request is treated as always, only later (`delayMs`). */
  | Readonly<{ kind: 'delay' }>
  /** Answered like this, without effect, or with `effect: true` after it. */
  | Readonly<{
      kind: 'answer'
      status: number
      body?: unknown
      headers?: Headers
      effect?: boolean
    }>
  /** Fields laid over the JSON object of the true answer, or over each object of a list. */
  | Readonly<{ kind: 'alter'; fields: Readonly<Record<string, unknown>> }>
  /** Accepted and never answered; the effect is there with `effect: true`. */
  | Readonly<{ kind: 'hang'; effect?: boolean }>
  /** The connection is reset instead of an answer. */
  | Readonly<{ kind: 'reset'; effect: boolean }>
  /**
   * Effect, then only the first `bytes` of the answer (default half); `cut` also breaks the connection short of
   * the announced length.
   */
  | Readonly<{ kind: 'truncate'; bytes?: number; cut?: boolean }>
  /** An HTML page instead of JSON; status 502 and no effect unless said. */
  | Readonly<{ kind: 'html'; status?: number; effect?: boolean }>
  /** Effect and answer are true, but lists do not show what it made until later. */
  | Readonly<{ kind: 'lag' } & LagLength>
  /** 403 with nothing remaining until the reset (GitHub docs, "Exceeding the rate limit"). */
  | Readonly<{ kind: 'primary-limit'; resetInSeconds: number }>
  /** A secondary limit with quota left; without `retryAfterSeconds` GitHub does not say how long. */
  | Readonly<{ kind: 'secondary-limit'; status?: 403 | 429; retryAfterSeconds?: number }>

type Headers = Readonly<Record<string, string>>

export type FaultRule = Readonly<{
  /** As in ROUTES: `POST /repos/{owner}/{repo}/pulls`. */
  route?: string
  method?: string
  /** A regular expression, searched in `path?query` as it was sent. */
  pattern?: string
  /** `owner/name`, in any case. */
  repository?: string
  /** Counted from 1 over the requests that match. Default: every one. */
  occurrence?: number | Readonly<{ from: number; to?: number }>
  delayMs?: number
  /** Goes with any action that has an effect: lists do not show what the request made until later. */
  lag?: LagLength
  action: FaultAction
}>

export type ArmedRule = Readonly<{ id: string; rule: FaultRule }> & {
  /** Requests that matched, and those that it took. */
  matched: number
  fired: number
}

export type FaultRules = { nextId: number; readonly armed: ArmedRule[] }

/** The facts of a request that a rule compares. */
type FaultTarget = Readonly<{
  method: string
  path: string
  query: string
  route: string | null
  repository: string | null
}>

/** The rule that takes this request: of those whose turn it is, the one armed first. All that match count it. */
export function takeFault(rules: FaultRules, target: FaultTarget): ArmedRule | null {
  const matching = rules.armed.filter((armed) => matches(armed.rule, target))
  for (const armed of matching) armed.matched += 1
  const taken = matching.find((armed) => isTurn(armed.rule.occurrence, armed.matched)) ?? null
  if (taken !== null) taken.fired += 1
  return taken
}

function matches(rule: FaultRule, target: FaultTarget): boolean {
  const address = target.query === '' ? target.path : `${target.path}?${target.query}`
  return (
    (rule.route === undefined || rule.route === target.route) &&
    (rule.method === undefined || rule.method === target.method) &&
    (rule.repository === undefined || rule.repository.toLowerCase() === target.repository) &&
    (rule.pattern === undefined || new RegExp(rule.pattern).test(address))
  )
}

function isTurn(occurrence: FaultRule['occurrence'], count: number): boolean {
  if (occurrence === undefined) return true
  if (typeof occurrence === 'number') return count === occurrence
  return count >= occurrence.from && count <= (occurrence.to ?? Number.POSITIVE_INFINITY)
}
