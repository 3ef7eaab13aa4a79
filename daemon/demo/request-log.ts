// Every API request that arrived, whatever became of it: tests assert on what the daemon asked for.

const CAPACITY = 20_000

export type RequestLog = { nextSequence: number; readonly entries: LoggedRequest[] }

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

export type RequestFilter = Readonly<{
  method?: string
  route?: string
  repository?: string
  account?: string
  status?: number
  /** Only what came after this one. */
  afterSequence?: number
}>

export type RequestReport = Readonly<{
  entries: readonly LoggedRequest[]
  total: number
  byMethod: Readonly<Record<string, number>>
  byRoute: Readonly<Record<string, number>>
  byRepository: Readonly<Record<string, number>>
  byStatus: Readonly<Record<string, number>>
  /** Whether older entries had to make room since the last clearing. */
  isComplete: boolean
}>

export function emptyLog(): RequestLog {
  return { nextSequence: 1, entries: [] }
}

/** Adds a request; the oldest makes room. */
export function logRequest(
  log: RequestLog,
  request: Omit<LoggedRequest, 'sequence' | 'account' | 'status' | 'faults'>,
): LoggedRequest {
  const entry = { ...request, sequence: log.nextSequence, account: null, status: null, faults: [] }
  log.nextSequence += 1
  log.entries.push(entry)
  if (log.entries.length > CAPACITY) log.entries.shift()
  return entry
}

/** What was asked for, with counts of it. */
export function reportRequests(log: RequestLog, filter: RequestFilter): RequestReport {
  const entries = log.entries.filter((entry) => isMeant(entry, filter))
  const count = (key: (entry: LoggedRequest) => string) => countBy(entries.map(key))
  return {
    entries,
    total: entries.length,
    byMethod: count((entry) => entry.method),
    byRoute: count((entry) => entry.route ?? 'none'),
    byRepository: count((entry) => entry.repository ?? 'none'),
    byStatus: count((entry) => String(entry.status ?? 'none')),
    isComplete: log.entries.length < CAPACITY,
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
