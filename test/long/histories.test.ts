import { expect, test } from '@jest/globals'
import { PHASES } from '../../daemon/core/queue.ts'
import { type KnownFault, liveThroughMany } from '../support/model-history.ts'

// Random histories of the whole engine, many of them.

const HISTORIES = Number(process.env['HISTORIES'] ?? 2000)

/** Open faults of the engine that these histories keep clear of; to be empty. */
const KNOWN: readonly KnownFault[] = []

test('whatever happens, each issue is worked on once, and everything comes to rest', async () => {
  const { histories, phases } = await liveThroughMany(HISTORIES, KNOWN)
  expect(histories).toBe(HISTORIES)
  expect(Object.keys(phases).sort()).toEqual(Object.keys(PHASES).sort())
}, 1_800_000)
