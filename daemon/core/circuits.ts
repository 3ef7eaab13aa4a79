import { type IssueKey, repositoryId, repositoryOf } from './issue-key.ts'
import type { Circuit, Circuits, QueueEntry } from './queue-state.ts'
import { plausibleWait, toTimestamp } from './timestamp.ts'

// A circuit counts failures in a row of one repository, or of GitHub. While it is open no new run starts there.
// Polls go on, and a run whose worker has succeeded is never held back.

/** The states of a circuit, and what it holds back in each. */
export const CIRCUIT_STATES = {
  closed: { meaning: 'nothing failed lately; runs start' },
  waiting: { meaning: 'fewer failures in a row than the threshold; the next run waits a little' },
  open: { meaning: 'too many in a row; no run starts until the interval is over' },
  'half-open': {
    meaning: 'the interval is over; one run tries, and its end closes it or opens it again',
  },
} as const satisfies Record<string, { meaning: string }>

export type CircuitState = keyof typeof CIRCUIT_STATES

/** What a circuit is about: one repository, or all of them. */
export const CIRCUIT_SCOPES = {
  repository: { meaning: 'the clone, the store or the remote of one repository' },
  provider: { meaning: 'GitHub itself' },
} as const satisfies Record<string, { meaning: string }>

export type CircuitScope = keyof typeof CIRCUIT_SCOPES

/** `circuit_failure_threshold`, `circuit_backoff_seconds`, `circuit_open_interval_seconds`. */
export type CircuitPolicy = Readonly<{
  threshold: number
  /** The wait after the first, second … failure below the threshold; the last one repeats. */
  backoffSeconds: readonly number[]
  openSeconds: number
}>

/** The name under which a circuit is stored and shown: `provider:github`, `repository:owner/name`. */
export function circuitId(scope: CircuitScope, key: IssueKey): string {
  return scope === 'provider' ? 'provider:github' : `repository:${repositoryId(repositoryOf(key))}`
}

/** The state of a circuit, and until when it holds runs back, in milliseconds since the epoch; null = it does not. */
export function evaluateCircuit(
  circuit: Circuit | undefined,
  now: number,
  policy: CircuitPolicy,
): Readonly<{ state: CircuitState; until: number | null }> {
  if (circuit === undefined) return { state: 'closed', until: null }
  const isTripped = circuit.failures >= policy.threshold
  const longestMs = waitSeconds(circuit.failures, policy) * 1000
  const until = plausibleWait(circuit.until, now, longestMs)
  if (until !== null && until > now) return { state: isTripped ? 'open' : 'waiting', until }
  return { state: isTripped ? 'half-open' : 'closed', until: null }
}

/**
 * Until when the circuits of an issue hold its run back, in milliseconds since the epoch; null = it may start.
 * A half-open circuit admits one run at a time: while a run that started since is at work, the answer is `now`.
 * @param atWork the entries in progress
 */
export function heldBackUntil(
  circuits: Circuits,
  atWork: readonly QueueEntry[],
  key: IssueKey,
  now: number,
  policy: CircuitPolicy,
): number | null {
  const scopes: readonly CircuitScope[] = ['repository', 'provider']
  const waits = scopes.flatMap((scope) => {
    const id = circuitId(scope, key)
    const circuit = circuits[id]
    if (circuit === undefined) return []
    const { state, until } = evaluateCircuit(circuit, now, policy)
    if (until !== null) return [until]
    const isTried = atWork.some(
      // A time ahead of now shows that the clock was set back; then any run at work counts as the one that tries.
      ({ key: other, updatedAt }) =>
        circuitId(scope, other) === id &&
        (updatedAt >= circuit.until || circuit.until > toTimestamp(now)),
    )
    return state === 'half-open' && isTried ? [now] : []
  })
  return waits.length === 0 ? null : Math.max(...waits)
}

export function waitSeconds(failures: number, policy: CircuitPolicy): number {
  if (failures >= policy.threshold) return policy.openSeconds
  const { backoffSeconds } = policy
  return backoffSeconds[Math.min(failures, backoffSeconds.length) - 1] ?? 0
}
