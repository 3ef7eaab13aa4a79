import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { backoffMs } from '../../daemon/core/backoff.ts'
import { afterFailure, afterRunEnd } from '../../daemon/core/circuit-changes.ts'
import { evaluateCircuit } from '../../daemon/core/circuits.ts'
import { eligibleEntries, LONGEST_WAIT_MS, nextHead } from '../../daemon/core/eligible-entries.ts'
import {
  asFault,
  describeFault,
  describeThrown,
  type Fault,
  fault,
  isFault,
} from '../../daemon/core/fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import { FAULT_CLASSES, type FaultSpec } from '../../daemon/core/fault-classes.ts'
import { evaluateGate, type Gate } from '../../daemon/core/gate.ts'
import { issueId } from '../../daemon/core/issue-key.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { type Meta, newMeta } from '../../daemon/core/meta.ts'
import {
  type Circuits,
  EMPTY_QUEUE,
  newEntry,
  type QueueEntry,
  type QueueState,
  withEntry,
} from '../../daemon/core/queue-state.ts'
import { fromTimestamp, plausibleWait, toTimestamp } from '../../daemon/core/timestamp.ts'
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

const TOKEN = ['gh', 'p_'].join('') + 'a1B2'.repeat(9)
const CATALOGUE: readonly (readonly [string, FaultSpec])[] = Object.entries(FAULTS)

describe('what the catalogue holds', () => {
  test('each code is an area and a name; each class exists and is used', () => {
    expect(CATALOGUE.filter(([code]) => !/^[a-z]+\/[a-z0-9]+(-[a-z0-9]+)*$/.test(code))).toEqual([])
    const used = new Set(CATALOGUE.map(([, spec]) => spec.class))
    expect([...used].sort()).toEqual(Object.keys(FAULT_CLASSES).sort())
  })

  test('each message is one line that begins and ends like a sentence', () => {
    const wrong = CATALOGUE.filter(
      ([, { message }]) =>
        !/^[\p{Lu}{a-z][^\n]*(?:[.}]|\.\})$/u.test(message) || / {2}/.test(message),
    )
    expect(wrong).toEqual([])
  })

  test('each placeholder is a plain name and nothing else is in braces', () => {
    const wrong = CATALOGUE.filter(([, { message, next }]) =>
      /[{}]/.test((message + next).replaceAll(/\{[a-z][A-Za-z]*\}/g, '')),
    )
    expect(wrong).toEqual([])
  })

  test('where nothing goes on by itself there is a next step', () => {
    const wanted: readonly FaultSpec['class'][] = ['config', 'state', 'usage', 'terminal']
    const silent = CATALOGUE.filter(([, spec]) => wanted.includes(spec.class) && spec.next === '')
    expect(silent.map(([code]) => code)).toEqual([])
  })

  test('each code has a section of its own on the troubleshooting page, with what to do', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/troubleshooting.md'), 'utf8')
    const sections = page.split('\n#### ').slice(1)
    const told = sections.map((section) => section.slice(1, section.indexOf('`', 1)))
    expect(told.toSorted()).toEqual(CATALOGUE.map(([code]) => code).toSorted())
    expect(sections.filter((section) => !/\n- What to do: \S/.test(section))).toEqual([])
    expect(page).not.toMatch(/[{}]/)
  })

  test('only the worker’s own failures use up attempts', () => {
    const using = Object.entries(FAULT_CLASSES).filter(([, { attempts }]) => attempts === '+1')
    expect(using.map(([name]) => name)).toEqual(['worker'])
  })

  test('every fault can be made and reads as a whole sentence', () => {
    for (const [code] of CATALOGUE) {
      const made = sampleFault(codeOf(code))
      expect(made.message).not.toMatch(/[{}?]/)
      expect(describeFault(made)).not.toMatch(/\n| $/)
      expect(made).toMatchObject({ code, name: 'Fault' })
    }
  })
})

describe('what a fault carries', () => {
  test('the facts in message and next step, a question mark for an unknown one', () => {
    const known = { path: '/p', found: 'x', wanted: 'w', target: '/q', url: 'u', repo: null }
    const made = fault('clone/wrong-origin', known)
    expect(made.message).toBe('The clone /p has origin x, not ? on w.')
    expect(made.next).toBe('Correct it: git -C /q remote set-url origin u')
    expect(fault('git/failed', { operation: 0, reason: false }).message).toBe('git 0 failed: false')
  })

  test('facts are taken as they are, never as patterns or placeholders', () => {
    const made = fault('git/failed', { operation: '{reason}', reason: '$& $1 {operation}' })
    expect(made.message).toBe('git {reason} failed: $& $1 {operation}')
  })

  test('no secret, whichever fact it came in', () => {
    const made = fault('git/failed', {
      operation: 'push',
      reason: `fatal: https://x:${TOKEN}@github.com GH_TOKEN=abc`,
    })
    expect(`${made.message} ${JSON.stringify(made.details)} ${made.stack}`).not.toMatch(
      new RegExp(`${TOKEN}|abc`),
    )
    expect(made.details['reason']).toContain('<redacted>')
  })

  test('the cause it explains', () => {
    const cause = new RangeError('x')
    expect(sampleFault('git/failed', {}, cause).cause).toBe(cause)
    expect('cause' in sampleFault('git/failed')).toBe(false)
  })
})

describe('how thrown values are read', () => {
  test('a fault is known by its mark, also from another realm', () => {
    expect(isFault(sampleFault('git/failed'))).toBe(true)
    const foreign: unknown = runInContext(
      "({ [Symbol.for('caduceus.fault')]: true })",
      createContext({}),
    )
    expect(isFault(foreign)).toBe(true)
    for (const other of [new RangeError('x'), null, undefined, 'text', 1, {}, () => 1]) {
      expect(isFault(other)).toBe(false)
    }
  })

  test('anything else becomes an unexpected fault with its text, redacted, on one line', () => {
    const made = asFault(new RangeError(`a\n  b ${TOKEN}`))
    expect(made.code).toBe('internal/unexpected')
    expect(made.message).toBe('Something unexpected happened: a b <redacted>.')
    const known: Fault = sampleFault('git/failed')
    expect(asFault(known)).toBe(known)
  })

  test('no thrown value is too odd to be told', () => {
    const odd: readonly unknown[] = [
      undefined,
      null,
      0,
      '',
      Symbol('s'),
      Object.create(null),
      {
        toString() {
          throw new RangeError('no')
        },
      },
    ]
    for (const value of odd) expect(typeof describeThrown(value)).toBe('string')
    for (const value of odd) expect(describeFault(value)).toMatch(/^Something unexpected/)
  })
})

function codeOf(text: string): FaultCode {
  const found = CODES.find((code) => code === text)
  if (found === undefined) throw new RangeError(text)
  return found
}

const CODES: readonly FaultCode[] = Object.keys(FAULTS).filter(
  (code): code is FaultCode => code in FAULTS,
)
