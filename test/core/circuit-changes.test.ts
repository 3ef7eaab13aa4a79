import { describe, expect, test } from '@jest/globals'
import { closeCircuits } from '../../daemon/core/circuit-changes.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

const NOW = Date.parse('2026-01-01T12:00:00.000Z')

const AT = toTimestamp(NOW)

const KEY = { owner: 'Octo', name: 'App', number: 7 }

describe('which circuits does an operator close?', () => {
  const POLICY = { threshold: 3, backoffSeconds: [60], openSeconds: 600 }
  const circuit = (failures: number, untilMs: number) => ({
    failures,
    until: toTimestamp(NOW + untilMs),
    lastError: { code: 'git/failed', message: 'It failed.', at: AT },
  })

  test('those of the repository and of GitHub go; those that kept work back are named; others stay', () => {
    const circuits = {
      'provider:github': circuit(3, 600_000),
      'repository:octo/app': circuit(1, -1000),
      'repository:octo/other': circuit(3, 600_000),
    }
    expect(closeCircuits(circuits, KEY, NOW, POLICY)).toEqual({
      circuits: { 'repository:octo/other': circuits['repository:octo/other'] },
      closed: ['provider:github'],
    })
  })

  test('with none to close the circuits are the same object', () => {
    const circuits = { 'repository:octo/other': circuit(3, 600_000) }
    const { circuits: after, closed } = closeCircuits(circuits, KEY, NOW, POLICY)
    expect(after).toBe(circuits)
    expect(closed).toEqual([])
  })
})
