import {
  type CircuitPolicy,
  type CircuitScope,
  circuitId,
  evaluateCircuit,
  waitSeconds,
} from './circuits.ts'
import { isFaultOf } from './fault.ts'
import { type FaultCode, isFaultCode, policyOf } from './fault-catalogue.ts'
import type { IssueKey } from './issue-key.ts'
import type { Circuits, RecordedError } from './queue-state.ts'
import { fromTimestamp, toTimestamp } from './timestamp.ts'

/**
 * The circuit that a fault counts against. Faults that are not listed count against none. An unusable answer of
 * GitHub is not listed either: it may concern one issue alone, which waits by itself.
 */
const SCOPES: Readonly<Partial<Record<FaultCode, CircuitScope>>> = {
  'github/unreachable': 'provider',
  'github/failed': 'provider',
  'git/failed': 'repository',
  'git/no-default-branch': 'repository',
  'git/store-damaged': 'repository',
  'clone/missing': 'repository',
  'clone/not-a-repository': 'repository',
  'clone/wrong-origin': 'repository',
  'clone/no-origin': 'repository',
}

/** Ends of a run that say nothing about the repository or GitHub. */
const NEUTRAL: ReadonlySet<string> = new Set([
  'rate-limited',
  'interrupted',
  'not-started',
  'infrastructure-failed',
  'withdrawn',
])

/** A fault as it was thrown, or as it was recorded, without details. */
type Failure = Readonly<{ code: string; message: string }>

/** The circuits after one more fault; unchanged when it counts against none. */
export function afterFailure(
  circuits: Circuits,
  key: IssueKey,
  error: Failure,
  now: number,
  policy: CircuitPolicy,
): Circuits {
  const scope = scopeOf(error)
  if (scope === null) return circuits
  const id = circuitId(scope, key)
  const failures = (circuits[id]?.failures ?? 0) + 1
  const until = toTimestamp(now + waitSeconds(failures, policy) * 1000)
  const at = toTimestamp(now)
  const { code, message } = error
  return { ...circuits, [id]: { failures, until, lastError: { code, message, at } } }
}

/**
 * The circuits after a run of this issue has ended. An end that shows a working repository and a working GitHub
 * closes both; a failed worker shows that too. Circuits that are unused for a day are dropped.
 */
export function afterRunEnd(
  circuits: Circuits,
  key: IssueKey,
  event: Readonly<{ on: string; error?: RecordedError }>,
  now: number,
  policy: CircuitPolicy,
): Circuits {
  const { error } = event
  if (error !== undefined && scopeOf(error) !== null) {
    return afterFailure(circuits, key, error, now, policy)
  }
  if (NEUTRAL.has(event.on) || isInfrastructureFailure(error)) return circuits
  const closed = [circuitId('repository', key), circuitId('provider', key)]
  const remaining = Object.entries(circuits).filter(
    ([id, { until }]) => !closed.includes(id) && now - fromTimestamp(until) < FORGOTTEN_MS,
  )
  return remaining.length === Object.keys(circuits).length
    ? circuits
    : Object.fromEntries(remaining)
}

/** A run that ended with a fault of this class has not shown that its repository works. */
function isInfrastructureFailure(error: RecordedError | undefined): boolean {
  return error !== undefined && isFaultCode(error.code) && policyOf(error.code).keepsCircuits
}

const FORGOTTEN_MS = 24 * 3_600_000

/** A status below 500 is about the request, such as one that names a branch GitHub does not know yet. */
function scopeOf(failure: Failure): CircuitScope | null {
  if (isFaultOf(failure, 'github/failed') && Number(failure.details.status) < 500) return null
  const scopes: Readonly<Record<string, CircuitScope | undefined>> = SCOPES
  return Object.hasOwn(scopes, failure.code) ? (scopes[failure.code] ?? null) : null
}

/**
 * The circuits without those of one issue: the operator says that their causes are fixed.
 * `closed` names the ones that held work back until now.
 */
export function closeCircuits(
  circuits: Circuits,
  key: IssueKey,
  now: number,
  policy: CircuitPolicy,
): Readonly<{ circuits: Circuits; closed: readonly string[] }> {
  const ids = [circuitId('repository', key), circuitId('provider', key)]
  const found = ids.filter((id) => Object.hasOwn(circuits, id))
  if (found.length === 0) return { circuits, closed: [] }
  const remaining = Object.entries(circuits).filter(([id]) => !found.includes(id))
  return {
    circuits: Object.fromEntries(remaining),
    closed: found.filter((id) => evaluateCircuit(circuits[id], now, policy).state !== 'closed'),
  }
}
