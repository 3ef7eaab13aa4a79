import { expect, test } from '@jest/globals'
import { PHASES } from '../../daemon/core/queue.ts'
import { type KnownFault, liveThroughMany } from '../support/model-history.ts'

// A taste of test/long/histories.test.ts: the same histories, few of them.

/** Open faults of the engine that these histories keep clear of; to be empty. */
const KNOWN: readonly KnownFault[] = []

test('whatever happens, each issue is worked on once, and everything comes to rest', async () => {
  const { histories, phases, crashes, faults } = await liveThroughMany(150, KNOWN)
  expect(histories).toBe(150)
  // A world in which nothing happens would prove nothing.
  expect(Object.keys(phases).sort()).toEqual(Object.keys(PHASES).sort())
  expect([crashes > 50, faults > 100]).toEqual([true, true])
}, 180_000)
