import { expect, test } from '@jest/globals'
import { PHASES } from '../../daemon/core/queue-state.ts'
import { type KnownFault, liveThroughMany } from '../support/model-history.ts'

// Random histories of the whole engine; `npm run test:long` asks for many more of them.

const HISTORIES = Number(process.env['HISTORIES'] ?? 150)

/** Open faults of the engine that these histories keep clear of; to be empty. */
const KNOWN: readonly KnownFault[] = []

test('whatever happens, each issue is worked on once, and everything comes to rest', async () => {
  const { histories, phases, crashes, faults } = await liveThroughMany(HISTORIES, KNOWN)
  expect(histories).toBe(HISTORIES)
  // A world in which nothing happens would prove nothing.
  expect(Object.keys(phases).sort()).toEqual(Object.keys(PHASES).sort())
  expect([crashes > HISTORIES / 3, faults > HISTORIES / 2]).toEqual([true, true])
}, 1_800_000)
