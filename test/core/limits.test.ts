import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'

describe('whether the limits make sense together', () => {
  test('each is a positive whole number', () => {
    const wrong = Object.entries(LIMITS).filter(
      ([, limit]) => !Number.isSafeInteger(limit) || limit <= 0,
    )
    expect(wrong).toEqual([])
  })

  test('what is a part of something is smaller than it', () => {
    const pairs: readonly (readonly [keyof typeof LIMITS, keyof typeof LIMITS])[] = [
      ['summaryBytes', 'resultBytes'],
      ['commitMessageBytes', 'resultBytes'],
      ['summaryBytes', 'bodyCharacters'],
      ['artifactsRenderedBytes', 'bodyCharacters'],
      ['commentBytes', 'contextBytes'],
      ['contextBytes', 'promptBytes'],
      ['diagnosticMessageBytes', 'metaBytes'],
      ['claimBytes', 'journalBytes'],
      ['heartbeatMs', 'heartbeatStaleMs'],
      ['termGraceMs', 'killBoundMs'],
      ['stateLockMs', 'tickMs'],
      ['intentMs', 'tickMs'],
      ['secondaryLimitMs', 'rateLimitCapMs'],
      ['interruptions', 'adoptions'],
    ]
    expect(pairs.filter(([part, whole]) => LIMITS[part] > LIMITS[whole])).toEqual([])
  })

  test('those that others set are not above theirs', () => {
    // Linux, execve(2): MAX_ARG_STRLEN is 131072, the name and terminator included.
    expect(LIMITS.environmentValueBytes).toBeLessThan(131_072 - 256)
    // GitHub: at most 100 items per page, 65,536 characters in a body, 256 in a title.
    expect(LIMITS.pageSize).toBeLessThanOrEqual(100)
    expect(LIMITS.bodyCharacters).toBeLessThanOrEqual(65_536)
    expect(LIMITS.titleCharacters).toBeLessThanOrEqual(256)
    // Design §5, §6, §7.
    expect(LIMITS).toMatchObject({
      stateLockMs: 10_000,
      tickMs: 100_000,
      heartbeatMs: 5000,
      backoffCapMs: 3_600_000,
      intentMs: 30_000,
      interruptions: 3,
      adoptions: 5,
    })
  })
})
