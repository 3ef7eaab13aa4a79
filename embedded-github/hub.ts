// What one running embedded GitHub holds beside its content (world.ts): settings, the log of requests, the
// faults that tests script, and what lists do not show yet.

import { join } from 'node:path'
import type { Clock } from '../daemon/core/ports.ts'
import type { ApiRequest, Reply } from './api-messages.ts'
import { type Comparison, compareCommits } from './git-commits.ts'
import type { Issue, PullIssue, Repository, World } from './world.ts'

/** Everything one running embedded GitHub has; the first argument of all its functions. */
export type Hub = {
  readonly root: string
  /** Of the API, without a slash at the end. */
  readonly url: string
  readonly world: World
  /** GitHub's clock: the host's, moved by `settings.clockOffsetMs`. */
  readonly clock: Pick<Clock, 'now'>
  readonly settings: Settings
  readonly limits: RateLimits
  readonly lag: VisibilityLag
  readonly faults: FaultRules
  readonly log: RequestLog
  /** By commits, which never change, so an entry is never wrong. */
  readonly comparisons: Map<string, Comparison>
  /** Whatever changes the content runs through here, so that two changes never meet. */
  readonly oneAtATime: OneAtATime
  /** Aborts when the server closes. */
  readonly closing: AbortSignal
}

export type Settings = {
  /** Added to every API request before it is looked at. */
  latencyMs: number
  clockOffsetMs: number
}

/** By account id; 0 = requests without a token. */
export type RateLimits = Map<number, RateWindow>
export type RateWindow = { limit: number; used: number; resetAt: number }

/** What answers at an endpoint; the path names what it is about: nothing more, a repository, or one of its issues. */
export type Endpoint<About extends readonly unknown[] = []> = (
  hub: Hub,
  request: ApiRequest,
  ...about: About
) => Reply | Promise<Reply>
export type RepositoryEndpoint = Endpoint<[repository: Repository]>
export type IssueEndpoint = Endpoint<[repository: Repository, issue: Issue]>
export type PullEndpoint = Endpoint<[repository: Repository, issue: PullIssue]>

/** Where the bare repository lies. After a rename the old path is a link to it, so clones go on working. */
export function gitPathOf(hub: Pick<Hub, 'root'>, repository: Repository): string {
  return join(hub.root, 'git', repository.owner, `${repository.name}.git`)
}

const MAX_COMPARISONS = 1000

/** As `compareCommits`, remembered. Faults: git/failed. */
export async function compareInRepository(
  hub: Hub,
  repository: Repository,
  baseOid: string,
  headOid: string,
): Promise<Comparison> {
  const key = `${repository.id} ${baseOid} ${headOid}`
  const known = hub.comparisons.get(key)
  if (known !== undefined) return known
  const comparison = await compareCommits(gitPathOf(hub, repository), baseOid, headOid)
  if (hub.comparisons.size >= MAX_COMPARISONS) hub.comparisons.clear()
  hub.comparisons.set(key, comparison)
  return comparison
}

/** Runs work after all work given before it has ended, well or badly. */
type OneAtATime = <T>(work: () => Promise<T> | T) => Promise<T>

export function createOneAtATime(): OneAtATime {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => undefined)
    return next
  }
}

// Every API request that arrived, whatever became of it: tests assert on what the daemon asked for.

/** Of a full log the oldest entry makes room for the next. */
export const LOG_CAPACITY = 20_000

type RequestLog = { nextSequence: number; readonly entries: LoggedRequest[] }

export type LoggedRequest = {
  readonly sequence: number
  readonly method: string
  /** As it was sent, still encoded. */
  readonly path: string
  readonly query: string
  /** As in ROUTES, `GET /repos/{owner}/{repo}/issues`; null = no such endpoint. */
  readonly route: string | null
  /** `owner/name` as requested, in lower case; null = not about a repository. */
  readonly repository: string | null
  /** Login; null = no token, or an unknown one. */
  account: string | null
  /** Whether it carried If-None-Match. */
  readonly isConditional: boolean
  /** GitHub's clock, milliseconds since the epoch. */
  readonly at: number
  /** null = not answered: still at work, or a fault without an answer. */
  status: number | null
  /** Ids of the fault rules that fired. */
  readonly faults: string[]
}

/** Adds a request; the oldest makes room. */
export function logRequest(
  log: RequestLog,
  request: Omit<LoggedRequest, 'sequence' | 'account' | 'status' | 'faults'>,
): LoggedRequest {
  const entry = { ...request, sequence: log.nextSequence, account: null, status: null, faults: [] }
  log.nextSequence += 1
  log.entries.push(entry)
  if (log.entries.length > LOG_CAPACITY) log.entries.shift()
  return entry
}

// Faults that tests script: a rule names requests, which of them it takes, and what goes wrong then.

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
  /** Effect, then only the first `bytes` of the answer (default half); `cut` also breaks the connection short of the announced length. */
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

type FaultRules = { nextId: number; readonly armed: ArmedRule[] }

/** What a rule looks at. */
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

// Read-after-write lag: GitHub's lists can omit for a while what was just created, although reading it by
// itself, counters and uniqueness checks already know of it (seen in the field: empty lists right after a
// successful POST). Everything created has an id from one rising counter, so what one request made is a
// range of ids.

/** Ranges of ids that lists do not show yet. */
type VisibilityLag = HiddenRange[]

type HiddenRange = {
  readonly fromId: number
  /** Exclusive. */
  readonly toId: number
  readonly untilMs: number | null
  readsLeft: number | null
}

/** How long: a time, a number of list requests that would have shown it, or whichever ends first. */
type LagLength = Readonly<{ lagMs?: number; reads?: number }>

/** Hides from lists what got an id from `fromId` to before `toId`. */
export function hide(
  lag: VisibilityLag,
  fromId: number,
  toId: number,
  length: LagLength,
  now: number,
): void {
  if (fromId === toId) return
  const untilMs = length.lagMs === undefined ? null : now + length.lagMs
  lag.push({ fromId, toId, untilMs, readsLeft: length.reads ?? null })
}

/** What a list shows of its items at `now`; a range that held something back has one read less left. */
export function visibleIn<Item extends Readonly<{ id: number }>>(
  lag: VisibilityLag,
  items: readonly Item[],
  now: number,
): readonly Item[] {
  const over = lag.filter((range) => isOver(range, now))
  for (const range of over) lag.splice(lag.indexOf(range), 1)
  const touched = new Set<HiddenRange>()
  const visible = items.filter((item) => {
    const range = lag.find(({ fromId, toId }) => fromId <= item.id && item.id < toId)
    if (range !== undefined) touched.add(range)
    return range === undefined
  })
  for (const range of touched) if (range.readsLeft !== null) range.readsLeft -= 1
  return visible
}

const isOver = (range: HiddenRange, now: number): boolean =>
  (range.untilMs !== null && now >= range.untilMs) ||
  (range.readsLeft !== null && range.readsLeft <= 0)
