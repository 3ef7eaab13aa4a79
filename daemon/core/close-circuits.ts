import { type CircuitPolicy, circuitId, evaluateCircuit } from './circuits.ts'
import type { IssueKey } from './issue-key.ts'
import type { Circuits } from './queue-state.ts'

/**
 * The circuits without those of one issue: the operator says that its surroundings are mended.
 * `closed` names the ones that kept work back until now.
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
  const kept = Object.entries(circuits).filter(([id]) => !found.includes(id))
  return {
    circuits: Object.fromEntries(kept),
    closed: found.filter((id) => evaluateCircuit(circuits[id], now, policy).state !== 'closed'),
  }
}
