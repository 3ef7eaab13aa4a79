import { type CircuitPolicy, type CircuitScope, circuitId, waitSeconds } from './circuits.ts'
import { isFaultOf } from './fault.ts'
import { FAULTS, type FaultCode } from './fault-catalogue.ts'
import type { FaultSpec } from './fault-classes.ts'
import type { IssueKey } from './issue-key.ts'
import type { Circuits, RecordedError } from './queue-state.ts'
import { fromTimestamp, toTimestamp } from './timestamp.ts'

/**
 * Which circuit a fault says something about; faults that are not here say nothing about either. Nor does an
 * answer that cannot be used: it may be about one issue alone, which waits by itself.
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

/** Ends of a run that tell nothing about its surroundings. */
const NEUTRAL: ReadonlySet<string> = new Set([
  'rate-limited',
  'interrupted',
  'not-started',
  'infrastructure-failed',
  'withdrawn',
])

/** A fault as it was caught, or as it was recorded, which is without details. */
type Failure = Readonly<{ code: string; message: string }>

/** A circuit after one more failure of its scope; unchanged when the fault tells nothing about one. */
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
 * The circuits after a run of this issue has ended. An end that shows working surroundings closes both;
 * that the worker failed is one of these. Circuits nobody has used for a day are dropped.
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
  if (NEUTRAL.has(event.on) || isEnvironmentFailure(error)) return circuits
  const closed = [circuitId('repository', key), circuitId('provider', key)]
  const kept = Object.entries(circuits).filter(
    ([id, { until }]) => !closed.includes(id) && now - fromTimestamp(until) < FORGOTTEN_MS,
  )
  return kept.length === Object.keys(circuits).length ? circuits : Object.fromEntries(kept)
}

/** A run that such a fault blocked in the end has not shown that its surroundings work. */
function isEnvironmentFailure(error: RecordedError | undefined): boolean {
  const faults: Readonly<Record<string, FaultSpec | undefined>> = FAULTS
  return error !== undefined && faults[error.code]?.class === 'infrastructure'
}

const FORGOTTEN_MS = 24 * 3_600_000

/** GitHub's status below 500 is about the request, such as one that names a branch it does not know yet. */
function scopeOf(failure: Failure): CircuitScope | null {
  if (isFaultOf(failure, 'github/failed') && Number(failure.details.status) < 500) return null
  const scopes: Readonly<Record<string, CircuitScope | undefined>> = SCOPES
  return Object.hasOwn(scopes, failure.code) ? (scopes[failure.code] ?? null) : null
}
