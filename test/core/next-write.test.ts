import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import {
  type Look,
  type NextWrite,
  nextWrite,
  type WriteFacts,
} from '../../daemon/core/next-write.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')
const SETTLE = 120_000
const MINUTE = 60_000

const REASON = fault('issue/withdrawn', { issue: 'i', reason: 'it was closed' })
const FOREIGN = fault('git/foreign-branch', { branch: 'b', found: 'f', expected: 'e', kept: 'k' })
const UNLISTED = fault('github/comments-unlisted', { issue: 'i', listed: 1, count: 2 })

const ABSENT: Look = { kind: 'absent' }
const NAMED: Look = { kind: 'absent', name: 'Bug' }
const FOUND: Look = { kind: 'found', marker: '12' }
const CONTRADICTION: Look = { kind: 'contradiction', fault: FOREIGN }
const UNCLEAR: Look = { kind: 'unclear', fault: UNLISTED }

/** An intent whose write was over this long ago, by both clocks. */
const sent = (agoMs: number, change: Partial<NonNullable<WriteFacts['intent']>> = {}) => ({
  attempt: 1,
  serverTime: toTimestamp(NOW - agoMs),
  deadlineAt: toTimestamp(NOW - agoMs),
  answered: null,
  ...change,
})
const OLD = sent(SETTLE)
const YOUNG = sent(SETTLE - 1)
const REPEATED = { attempt: 2 }

const FACTS: WriteFacts = {
  isRemote: true,
  mayDuplicate: false,
  isFirst: false,
  intent: null,
  looks: [],
  eligibility: 'unasked',
  sent: null,
  duplicatesRemoved: false,
  now: NOW,
  serverNow: NOW,
  settleMs: SETTLE,
}
const after = (change: Partial<WriteFacts>): NextWrite => nextWrite({ ...FACTS, ...change })
const COMMENT = { mayDuplicate: true } as const

describe('what comes next for an action', () => {
  // biome-ignore format: a table is read by its rows
  test.each<[string, Partial<WriteFacts>, NextWrite]>([
    // Nothing is open.
    ['it is looked for before it is done', {}, { do: 'look' }],
    ['there already: recorded', { looks: [FOUND] }, { do: 'record', marker: '12' }],
    ['not there: sent', { looks: [ABSENT] }, { do: 'send', seen: { kind: 'absent' } }],
    ['what has to be acted on keeps its name', { looks: [NAMED] }, { do: 'send', seen: { kind: 'absent', name: 'Bug' } }],
    ['a contradiction stops it', { looks: [CONTRADICTION] }, { do: 'stop', fault: FOREIGN }],
    ['a list that is behind proves nothing', { looks: [UNCLEAR] }, { do: 'wait-for-list', fault: UNLISTED }],
    ['answered: recorded', { looks: [ABSENT], intent: sent(0), sent: '12' }, { do: 'record', marker: '12' }],
    ['a local one needs no intent', { isRemote: false, looks: [ABSENT], sent: 'oid' }, { do: 'record', marker: 'oid' }],
    // The first that others can see.
    ['the issue is asked about first', { isFirst: true }, { do: 'ask' }],
    ['eligible: looked for', { isFirst: true, eligibility: 'eligible' }, { do: 'look' }],
    ['not eligible: nothing is done', { isFirst: true, eligibility: REASON }, { do: 'stop', fault: REASON }],
    ['open: looked for before it is asked', { isFirst: true, intent: OLD }, { do: 'look' }],
    ['open and found: nobody asks', { isFirst: true, intent: OLD, looks: [FOUND] }, { do: 'record', marker: '12' }],
    ['open and not found twice: asked', { isFirst: true, intent: OLD, looks: [ABSENT, ABSENT] }, { do: 'ask' }],
    ['open and not eligible: not repeated', { isFirst: true, intent: OLD, looks: [ABSENT, ABSENT], eligibility: REASON }, { do: 'stop', fault: REASON }],
    ['open and eligible: repeated', { isFirst: true, intent: OLD, looks: [ABSENT, ABSENT], eligibility: 'eligible' }, { do: 'send', seen: { kind: 'absent' } }],
    // A write whose effect is unknown.
    ['found: recorded', { intent: YOUNG, looks: [FOUND] }, { do: 'record', marker: '12' }],
    ['not found, too early: waits', { intent: YOUNG, looks: [ABSENT] }, { do: 'wait', until: NOW + 1 }],
    ['not found, old enough: a second look', { intent: OLD, looks: [ABSENT] }, { do: 'look' }],
    ['not found twice: repeated', { intent: OLD, looks: [ABSENT, ABSENT] }, { do: 'send', seen: { kind: 'absent' } }],
    ['found at the second look: recorded by the next walk', { intent: OLD, looks: [ABSENT, FOUND] }, { do: 'wait', until: NOW }],
    ['contradicted at the second look', { intent: OLD, looks: [ABSENT, CONTRADICTION] }, { do: 'stop', fault: FOREIGN }],
    ['unclear at the second look', { intent: OLD, looks: [ABSENT, UNCLEAR] }, { do: 'wait-for-list', fault: UNLISTED }],
    ['our clock set ahead shortens nothing', { intent: YOUNG, looks: [ABSENT], now: NOW + 60 * MINUTE }, { do: 'wait', until: NOW + 60 * MINUTE + 1 }],
    ['GitHub has not answered yet: our clock counts', { intent: OLD, looks: [ABSENT], serverNow: null }, { do: 'look' }],
    ['GitHub is behind: its clock counts', { intent: OLD, looks: [ABSENT], serverNow: NOW - MINUTE }, { do: 'wait', until: NOW + MINUTE }],
    // A write that GitHub may take twice.
    ['one try: no duplicate', { ...COMMENT, intent: YOUNG, looks: [FOUND] }, { do: 'record', marker: '12' }],
    ['repeated and found early: waits for a duplicate', { ...COMMENT, intent: sent(SETTLE - 1, REPEATED), looks: [FOUND] }, { do: 'wait', until: NOW + 1 }],
    ['repeated and found in time: duplicates go', { ...COMMENT, intent: sent(SETTLE, REPEATED), looks: [FOUND] }, { do: 'remove-duplicates' }],
    ['duplicates are gone: recorded', { ...COMMENT, intent: sent(SETTLE, REPEATED), looks: [FOUND], duplicatesRemoved: true }, { do: 'record', marker: '12' }],
    ['repeated, of a kind that cannot come twice', { intent: sent(SETTLE, REPEATED), looks: [FOUND] }, { do: 'record', marker: '12' }],
    ['repeated and answered: noted, and waited for a duplicate', { ...COMMENT, intent: sent(0, REPEATED), looks: [ABSENT, ABSENT], sent: '7' }, { do: 'note-answer', marker: '7', until: NOW + SETTLE }],
    ['answered and unseen: waits', { ...COMMENT, intent: sent(SETTLE, { attempt: 2, answered: '7' }), looks: [ABSENT, ABSENT] }, { do: 'wait', until: NOW + SETTLE }],
    ['answered and unseen for long: the answer is recorded', { ...COMMENT, intent: sent(4 * SETTLE, { attempt: 2, answered: '7' }), looks: [ABSENT, ABSENT] }, { do: 'record', marker: '7' }],
    ['answered and unseen, nearly for long: waits until then', { ...COMMENT, intent: sent(4 * SETTLE - 5, { attempt: 2, answered: '7' }), looks: [ABSENT, ABSENT] }, { do: 'wait', until: NOW + 5 }],
  ])('%s', (_, facts, expected) => {
    expect(after(facts)).toEqual(expected)
  })
})

describe('of all that can be known', () => {
  const LOOKS: readonly Look[] = [ABSENT, FOUND, CONTRADICTION, UNCLEAR]
  const INTENTS = [1, 2, 3].flatMap((attempt) =>
    [-30_000, 0, SETTLE - 1, SETTLE, 4 * SETTLE].flatMap((ago) =>
      [null, '7'].map((answered) => sent(ago, { attempt, answered })),
    ),
  )
  /** Every combination. */
  const all: readonly WriteFacts[] = [true, false].flatMap((isRemote) =>
    [true, false].flatMap((mayDuplicate) =>
      [true, false].flatMap((isFirst) =>
        [null, ...INTENTS].flatMap((intent) =>
          [[], ...LOOKS.map((look) => [look]), ...LOOKS.map((look) => [ABSENT, look])].flatMap(
            (looks) =>
              (['unasked', 'eligible', REASON] as const).flatMap((eligibility) =>
                [true, false].flatMap((duplicatesRemoved) =>
                  [NOW, null, NOW - MINUTE].map((serverNow) => ({
                    ...FACTS,
                    isRemote,
                    mayDuplicate,
                    isFirst,
                    intent,
                    looks,
                    eligibility,
                    duplicatesRemoved,
                    serverNow,
                  })),
                ),
              ),
          ),
        ),
      ),
    ),
  )
  const where = (kind: NextWrite['do']): readonly WriteFacts[] =>
    all.filter((facts) => nextWrite(facts).do === kind)
  const isAbsent = (look: Look): boolean => look.kind === 'absent'

  test('nothing is sent that was seen, or that nobody looked for', () => {
    expect(where('send')).not.toHaveLength(0)
    expect(
      where('send').filter(({ looks }) => looks.length === 0 || !looks.every(isAbsent)),
    ).toEqual([])
  })

  test('an open write is repeated only after the settle time and two looks, and never once answered', () => {
    const tooEarly = where('send').filter(
      ({ intent, looks, now }) =>
        intent !== null &&
        (looks.length < 2 ||
          intent.answered !== null ||
          now - Date.parse(intent.deadlineAt) < SETTLE),
    )
    expect(tooEarly).toEqual([])
  })

  test('the first that others can see is sent only for an issue that still asks for it', () => {
    const unasked = where('send').filter(
      ({ isFirst, eligibility }) => isFirst && eligibility !== 'eligible',
    )
    expect(unasked).toEqual([])
  })

  test('only what was seen or answered is recorded', () => {
    const unproved = where('record').filter(
      ({ intent, looks }) => looks.at(-1)?.kind !== 'found' && (intent?.answered ?? null) === null,
    )
    expect(unproved).toEqual([])
  })

  test('of a write that may be there twice none is recorded before the younger ones are removed', () => {
    const early = where('record').filter(
      ({ mayDuplicate, intent, duplicatesRemoved, looks }) =>
        mayDuplicate &&
        (intent?.attempt ?? 1) > 1 &&
        looks.at(-1)?.kind === 'found' &&
        !duplicatesRemoved,
    )
    expect(early).toEqual([])
  })

  test('an answer is kept whatever else is known', () => {
    const answers = all.map((facts) => nextWrite({ ...facts, sent: '9' }))
    expect(new Set(answers.map((each) => each.do))).toEqual(new Set(['record', 'note-answer']))
    expect(answers.every((each) => 'marker' in each && each.marker === '9')).toBe(true)
  })
})
