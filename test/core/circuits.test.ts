import { describe, expect, test } from '@jest/globals'
import { afterFailure, afterRunEnd } from '../../daemon/core/circuit-changes.ts'
import { evaluateCircuit } from '../../daemon/core/circuits.ts'
import { eligibleEntries, nextHead } from '../../daemon/core/eligible-entries.ts'
import { type Fault } from '../../daemon/core/fault.ts'
import { issueId } from '../../daemon/core/issue-key.ts'
import {
  type Circuits,
  newEntry,
  type QueueEntry,
  type QueueState,
} from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { sampleFault } from '../support/faults.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

const HOUR = 3_600_000

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

const queueOf = (entries: readonly QueueEntry[], circuits: Circuits = {}): QueueState => ({
  circuits,
  entries: Object.fromEntries(entries.map((one) => [issueId(one.key), one])),
})

describe('circuits', () => {
  const KEY = { owner: 'o', name: 'a', number: 1 }
  const GIT = { code: 'git/failed', message: 'm', at: toTimestamp(NOW) }
  const GITHUB = { ...GIT, code: 'github/failed' }
  const failures = (count: number, error = GIT, now = NOW): Circuits => {
    let circuits: Circuits = {}
    for (let each = 0; each < count; each += 1)
      circuits = afterFailure(circuits, KEY, error, now, CIRCUITS)
    return circuits
  }
  const judged = (circuits: Circuits, now = NOW) =>
    evaluateCircuit(circuits['repository:o/a'] ?? circuits['provider:github'], now, CIRCUITS)
  const startable = (circuits: Circuits, now: number, ...more: readonly QueueEntry[]) => {
    const entries = [entry('o/a#1', 9), entry('o/b#1', 8), ...more]
    const capacity = { parallelism: 9, perRepository: 0 }
    const found = eligibleEntries(queueOf(entries, circuits), now, capacity, CIRCUITS)
    return found.map(({ key }) => issueId(key))
  }

  test.each([
    [1, 'waiting', 30_000],
    [2, 'waiting', 120_000],
    [3, 'open', 1_800_000],
    [4, 'open', 1_800_000],
  ])('after %i failures it is %s for %i ms', (count, state, ms) => {
    const circuits = failures(count)
    expect(judged(circuits)).toEqual({ state, until: NOW + ms })
    const later = count < CIRCUITS.threshold ? 'closed' : 'half-open'
    expect(judged(circuits, NOW + ms)).toEqual({ state: later, until: null })
  })

  test('one of a repository keeps back only its issues, one of GitHub all of them', () => {
    expect(startable(failures(3), NOW)).toEqual(['o/b#1'])
    expect(startable(failures(3, GITHUB), NOW)).toEqual([])
    expect(startable({}, NOW)).toEqual(['o/a#1', 'o/b#1'])
  })

  test('half-open, one run tries; while it is at work no other one starts', () => {
    const now = NOW + 1_800_000
    expect(startable(failures(3, GITHUB), now)).toEqual(['o/a#1'])
    const trying = { ...running('o/c#1'), updatedAt: toTimestamp(now) }
    expect(startable(failures(3, GITHUB), now, trying)).toEqual([])
    // One that was at work before the circuit opened tries nothing.
    expect(startable(failures(3, GITHUB), now, running('o/c#1'))).toEqual(['o/a#1'])
  })

  test('the end of the one that tries closes it or opens it again', () => {
    const now = NOW + 1_800_000
    const ended = (on: string, error?: typeof GIT) =>
      afterRunEnd(failures(3), KEY, error ? { on, error } : { on }, now, CIRCUITS)
    expect(ended('published')).toEqual({})
    expect(ended('worker-failed', { ...GIT, code: 'worker/exited' })).toEqual({})
    expect(judged(ended('infrastructure-failed', GIT), now).state).toBe('open')
    for (const neutral of ['interrupted', 'rate-limited', 'not-started']) {
      expect(ended(neutral)).toEqual(failures(3))
    }
    // Nor does the run that it blocked in the end show that they work.
    const lasting = { ...GIT, code: 'github/bad-answer' }
    expect(ended('blocked', lasting)).toEqual(failures(3))
    expect(ended('blocked', { ...GIT, code: 'publish/policy' })).toEqual({})
    // A fault of this host tells nothing about GitHub or a repository.
    expect(ended('infrastructure-failed', { ...GIT, code: 'sys/io' })).toEqual(failures(3))
  })

  test('what GitHub says about one request tells nothing about GitHub', () => {
    const after = (caught: Fault) => afterFailure({}, KEY, caught, NOW, CIRCUITS)
    expect(after(sampleFault('github/bad-answer'))).toEqual({})
    expect(after(sampleFault('github/failed', { status: 422 }))).toEqual({})
    expect(Object.keys(after(sampleFault('github/failed', { status: 502 })))).toEqual([
      'provider:github',
    ])
    expect(Object.keys(after(sampleFault('github/unreachable')))).toEqual(['provider:github'])
  })

  test('one that nobody used for a day is forgotten; a time that cannot be right holds nothing back', () => {
    const other = { ...KEY, name: 'z' }
    const old = afterFailure({}, other, GIT, NOW - 26 * HOUR, CIRCUITS)
    expect(afterRunEnd(old, KEY, { on: 'published' }, NOW, CIRCUITS)).toEqual({})
    expect(judged(failures(3, GIT, NOW + 5 * HOUR)).state).toBe('half-open')
  })

  test('what comes next says until when', () => {
    const queue = queueOf([entry('o/a#1', 9)], failures(3))
    expect(nextHead(queue, NOW, CIRCUITS)).toEqual({ head: null, earliest: NOW + 1_800_000 })
  })
})
