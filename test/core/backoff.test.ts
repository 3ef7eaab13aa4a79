import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { backoffMs } from '../../daemon/core/backoff.ts'
import { LIMITS } from '../../daemon/core/limits.ts'

describe('how long a failure is waited out', () => {
  test('the base, doubled per earlier failure, up to an hour', () => {
    const waits = [1, 2, 3, 4, 5, 6, 20, 10_000].map((failures) => backoffMs(300, failures, 0))
    expect(waits).toEqual([300, 600, 1200, 2400, 3600, 3600, 3600, 3600].map((s) => s * 1000))
    expect(backoffMs(300, 0, 0)).toBe(300_000)
    expect(backoffMs(86_400, 1, 0)).toBe(LIMITS.backoffCapMs)
    expect(backoffMs(0, 5, 0)).toBe(0)
  })

  test('the jitter takes off at most a quarter and never adds', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 7200 }),
        fc.nat({ max: 1000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (base, failures, jitter) => {
          const full = backoffMs(base, failures, 0)
          const wait = backoffMs(base, failures, jitter)
          expect(wait).toBeLessThanOrEqual(full)
          expect(wait).toBeGreaterThanOrEqual(Math.floor(full * 0.75))
          expect(Number.isInteger(wait)).toBe(true)
        },
      ),
    )
    expect(backoffMs(300, 1, 0.999)).toBeLessThan(backoffMs(300, 1, 0.1))
  })
})
