import { describe, expect, test } from '@jest/globals'
import { evaluateGate, type Gate } from '../../daemon/core/gate.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { type Meta, newMeta } from '../../daemon/core/meta.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

const HOUR = 3_600_000

const MINUTE = 60_000

describe('what a tick may do', () => {
  const INTERVAL = 10 * MINUTE
  const meta = (change: Partial<Meta>): Meta => ({ ...newMeta(''), ...change })
  const gate = (change: Partial<Meta>, forced = false): Gate =>
    evaluateGate(meta(change), NOW, INTERVAL, forced)
  const polled = (msAgo: number): Partial<Meta> => ({ lastPollStarted: toTimestamp(NOW - msAgo) })
  const limited = (ms: number): Partial<Meta> => ({
    wait: { kind: 'primary', until: toTimestamp(NOW + ms) },
  })

  test.each([
    ['never before', {}, true],
    ['a whole interval ago', polled(INTERVAL), true],
    ['nine tenths of it ago', polled(0.9 * INTERVAL), true],
    ['a moment less ago', polled(0.9 * INTERVAL - 1), false],
    ['just now', polled(0), false],
    ['in the future, for the clock was set back', polled(-HOUR), true],
  ])('polled %s', (_, change, pollIsDue) => {
    expect(gate(change)).toMatchObject({ pollIsDue, limitedUntil: null })
    expect(gate(change, true).pollIsDue).toBe(true)
  })

  test('the cadence counts from the start of a poll, not from the end of a tick', () => {
    const ended = { lastTickStarted: toTimestamp(NOW), lastTickFinished: toTimestamp(NOW) }
    expect(gate({ ...ended, ...polled(INTERVAL) }).pollIsDue).toBe(true)
  })

  test.each([
    ['still', 1, true],
    ['no longer', 0, false],
    ['for longer than GitHub ever limits, so it is not believed', LIMITS.rateLimitCapMs + 1, false],
  ])('a rate limit that holds %s, forced or not', (_, ms, holds) => {
    for (const forced of [false, true]) {
      expect(gate(limited(ms), forced)).toMatchObject({
        limitedUntil: holds ? NOW + ms : null,
        pollIsDue: !holds,
      })
    }
  })

  test('the next poll is the later of cadence and limit', () => {
    const due = NOW - MINUTE + 0.9 * INTERVAL
    expect(gate({ ...polled(MINUTE), ...limited(2 * MINUTE) }).nextPollAt).toBe(due)
    expect(gate({ ...polled(MINUTE), ...limited(HOUR) }).nextPollAt).toBe(NOW + HOUR)
  })
})
