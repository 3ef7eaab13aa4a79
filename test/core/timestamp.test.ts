import { describe, expect, test } from '@jest/globals'
import { fromTimestamp, plausibleWait, toTimestamp } from '../../daemon/core/timestamp.ts'

describe('how times are stored and read back', () => {
  test('a time comes back to the millisecond, in UTC', () => {
    expect(toTimestamp(1_767_225_600_123)).toBe('2026-01-01T00:00:00.123Z')
    expect(fromTimestamp(toTimestamp(1_767_225_600_123))).toBe(1_767_225_600_123)
    expect(fromTimestamp('2026-01-01T00:00:00Z')).toBe(1_767_225_600_000)
  })

  test('a stored wait counts unless it is longer than any wait can be', () => {
    const now = 1_000_000
    expect(plausibleWait(null, now, 5000)).toBe(null)
    expect(plausibleWait(toTimestamp(now + 5000), now, 5000)).toBe(now + 5000)
    expect(plausibleWait(toTimestamp(now - 3000), now, 5000)).toBe(now - 3000)
    // The clock was set back by a day since.
    expect(plausibleWait(toTimestamp(now + 5001), now, 5000)).toBe(null)
    expect(plausibleWait(toTimestamp(now + 86_400_000), now, 5000)).toBe(null)
  })
})
