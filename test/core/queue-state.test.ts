import { describe, expect, test } from '@jest/globals'
import { EMPTY_QUEUE, newEntry, withEntry } from '../../daemon/core/queue-state.ts'

describe('how the queue grows', () => {
  const NOW = '2026-01-01T00:00:00.000Z'
  const KEY = { owner: 'Owner', name: 'Repo', number: 1 }

  test('a new entry is due at once, with a whole budget, in its first generation', () => {
    expect(newEntry(KEY, 'investigation', NOW, '2025-12-31T00:00:00.000Z')).toMatchObject({
      key: KEY,
      phase: 'queued',
      ticket: 'investigation',
      attempts: 0,
      interruptions: 0,
      generation: 1,
      runId: null,
      nextAttemptAt: null,
      lastError: null,
      queuedAt: NOW,
      updatedAt: NOW,
      seenUpdatedAt: '2025-12-31T00:00:00.000Z',
    })
  })

  test('putting an entry in leaves the given queue and its other entries alone', () => {
    const one = newEntry(KEY, 'code', NOW, NOW)
    const first = withEntry(EMPTY_QUEUE, 'owner/repo#1', one)
    const second = withEntry(
      first,
      'owner/repo#2',
      newEntry({ ...KEY, number: 2 }, 'code', NOW, NOW),
    )
    const changed = withEntry(second, 'owner/repo#1', { ...one, attempts: 1 })
    expect(EMPTY_QUEUE.entries).toEqual({})
    expect(Object.keys(first.entries)).toEqual(['owner/repo#1'])
    expect(second.entries['owner/repo#1']).toBe(one)
    expect(changed.entries['owner/repo#1']?.attempts).toBe(1)
    expect(changed.entries['owner/repo#2']).toBe(second.entries['owner/repo#2'])
  })
})
