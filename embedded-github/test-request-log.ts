// Every API request that arrived, and how it was answered: tests assert on what the daemon asked for.

/** Of a full log the oldest entry makes room for the next. */
export const LOG_CAPACITY = 20_000

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
