import { describe, expect, test } from '@jest/globals'
import { eligibleEntries, LONGEST_WAIT_MS, nextHead } from '../../daemon/core/eligible-entries.ts'
import { issueId } from '../../daemon/core/issue-key.ts'
import {
  type Circuits,
  newEntry,
  type QueueEntry,
  type QueueState,
} from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

const MINUTE = 60_000

const CIRCUITS = { threshold: 3, backoffSeconds: [30, 120], openSeconds: 1800 }

const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'

/** An entry from `owner/name#number`, queued `minutesAgo`. */
function entry(issue: string, minutesAgo: number, change: Partial<QueueEntry> = {}): QueueEntry {
  const [repository = '', number = '1'] = issue.split('#')
  const [owner = '', name = ''] = repository.split('/')
  const at = toTimestamp(NOW - minutesAgo * MINUTE)
  return { ...newEntry({ owner, name, number: Number(number) }, 'code', at, at), ...change }
}

const running = (issue: string): QueueEntry =>
  entry(issue, 90, { phase: 'in_progress', runId: RUN })

const inMs = (ms: number): Partial<QueueEntry> => ({ nextAttemptAt: toTimestamp(NOW + ms) })

const queueOf = (entries: readonly QueueEntry[], circuits: Circuits = {}): QueueState => ({
  circuits,
  entries: Object.fromEntries(entries.map((one) => [issueId(one.key), one])),
})

const chosen = (
  entries: readonly QueueEntry[],
  parallelism = 100,
  perRepository = 0,
): readonly string[] =>
  eligibleEntries(queueOf(entries), NOW, { parallelism, perRepository }, CIRCUITS).map(({ key }) =>
    issueId(key),
  )

describe('which entries may be claimed', () => {
  test('first queued, first served; what came together goes by name', () => {
    const entries = [entry('o/b#2', 5), entry('o/b#1', 5), entry('o/a#9', 5), entry('o/z#1', 7)]
    expect(chosen(entries)).toEqual(['o/z#1', 'o/a#9', 'o/b#1', 'o/b#2'])
    expect(chosen(entries.toReversed())).toEqual(chosen(entries))
  })

  test('only queued entries are claimed, and only running ones take a slot', () => {
    const phases = ['awaiting_review', 'done', 'failed', 'needs_attention', 'previewed', 'skipped']
    const others = (phases as readonly QueueEntry['phase'][]).map((phase, at) =>
      entry(`o/other#${at + 1}`, 60, { phase }),
    )
    expect(chosen([...others, entry('o/a#1', 5)], 1)).toEqual(['o/a#1'])
    expect(chosen([...others, running('o/a#2'), entry('o/a#1', 5)], 1)).toEqual([])
  })

  test.each([
    [3, 0, ['o/a#2', 'o/a#3']],
    [2, 0, ['o/a#2']],
    [1, 0, []],
    [0, 0, []],
    [10, 1, ['o/b#1']],
    [10, 2, ['o/a#2', 'o/b#1', 'o/b#2']],
    [2, 1, ['o/b#1']],
  ])(
    '%d slots and %d per repository (0 = no limit) beside one that runs',
    (slots, each, wanted) => {
      const entries = [
        running('O/A#1'),
        entry('o/a#2', 9),
        entry('o/a#3', 8),
        entry('o/b#1', 7),
        entry('o/b#2', 6),
        entry('o/b#3', 5),
      ]
      expect(chosen(entries, slots, each)).toEqual(wanted)
    },
  )

  test('more running than allowed leaves nothing, and nothing below that', () => {
    expect(chosen([running('o/a#1'), running('o/b#1'), entry('o/c#1', 5)], 1)).toEqual([])
  })

  test.each([
    ['due now', 0, true],
    ['due in a moment', 1, false],
    ['due after the longest wait', LONGEST_WAIT_MS, false],
    ['later than any wait can be, so the clock was set back', LONGEST_WAIT_MS + 1, true],
  ])('an entry that is %s', (_, ms, isChosen) => {
    const waiting = entry('o/a#1', 9, inMs(ms))
    expect(chosen([waiting, entry('o/a#2', 5)], 1)).toEqual([isChosen ? 'o/a#1' : 'o/a#2'])
  })
})

describe('what comes next', () => {
  test('the first that is due, though others were queued before it', () => {
    const due = entry('o/a#2', 5)
    expect(nextHead(queueOf([entry('o/a#1', 9, inMs(MINUTE)), due]), NOW, CIRCUITS)).toEqual({
      head: due,
      earliest: null,
    })
  })

  test('when none is due, the time of the earliest', () => {
    const entries = [entry('o/a#1', 9, inMs(5 * MINUTE)), entry('o/a#2', 5, inMs(MINUTE))]
    const none = { head: null, earliest: null }
    expect(nextHead(queueOf(entries), NOW, CIRCUITS)).toEqual({
      head: null,
      earliest: NOW + MINUTE,
    })
    expect(nextHead(queueOf([running('o/a#1')]), NOW, CIRCUITS)).toEqual(none)
  })
})
