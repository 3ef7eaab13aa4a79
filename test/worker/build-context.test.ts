import { describe, expect, test } from '@jest/globals'
import { isFault } from '../../daemon/core/fault.ts'
import type { IssueComment, IssueSummary, TimelineEvent } from '../../daemon/core/ports.ts'
import { buildContext, type CommentTrust } from '../../daemon/worker/build-context.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')
const MIB = 1_048_576
const KEY = { owner: 'Acme', name: 'Widgets', number: 7 }
const OWN_ID = 99
const TRUST: CommentTrust = {
  trustedAuthors: ['ada', 'grumpy[bot]'],
  ignoredAuthors: [/\[bot\]$/],
  ownId: OWN_ID,
}
const ISSUE: IssueSummary = {
  number: 7,
  title: 'T',
  body: 'B',
  author: 'ada',
  labels: ['bug'],
  isOpen: true,
  isPullRequest: false,
  mergedAt: null,
  updatedAt: NOW,
  commentCount: 0,
}
/** Minutes after the issue began. */
const minute = (at: number): number => NOW - 10_000_000 + at * 60_000
const iso = (at: number): string => new Date(minute(at)).toISOString()
const comment = (id: number, change: Partial<IssueComment> = {}): IssueComment => ({
  id,
  author: 'bob',
  authorId: 5,
  authorAssociation: 'NONE',
  body: `body ${id}`,
  createdAt: minute(id),
  updatedAt: minute(id),
  ...change,
})
const byAda = (id: number, change: Partial<IssueComment> = {}): IssueComment =>
  comment(id, { author: 'ada', ...change })
const event = (id: number, change: Partial<TimelineEvent> = {}): TimelineEvent => ({
  id,
  kind: 'labeled',
  actor: 'ada',
  actorId: 1,
  createdAt: minute(id),
  label: 'bug',
  ...change,
})

type Item = Readonly<{ id: number; body: string }>
type Context = Readonly<{
  issue_body: string
  comments: readonly Item[]
  trusted_comments: readonly Item[]
  events: readonly unknown[]
  timeline: readonly Readonly<{ kind: string; at: string; comment_id?: number }>[]
  trusted_edits: readonly Item[]
  allowed_threads: readonly number[]
  truncation: Readonly<Record<string, unknown>>
}>

function textOf(
  comments: readonly IssueComment[],
  events: readonly TimelineEvent[] = [],
  issue: Partial<IssueSummary> = {},
): string {
  return buildContext(KEY, { ...ISSUE, ...issue }, comments, events, TRUST, NOW)
}
// The document is the product's own; what it holds is what is tested here.
const contextOf = (...args: Parameters<typeof textOf>): Context =>
  JSON.parse(textOf(...args)) as Context
const idsOf = (items: readonly Item[]): readonly number[] => items.map(({ id }) => id)
const UNTOUCHED = {
  comments_truncated: false,
  trusted_comments_truncated: false,
  events_truncated: false,
  dropped_untrusted_comments: 0,
  dropped_trusted_comments: 0,
  dropped_events: 0,
  body_truncated_count: 0,
  total_body_bytes_dropped: 0,
}
const truncated = (change: object): object => ({ ...UNTOUCHED, ...change })
const range = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at + 1)

describe('what the context of a worker says', () => {
  test('everything, in the published form, the same for the same input', () => {
    const edited = byAda(2, { updatedAt: minute(3), authorAssociation: 'OWNER' })
    const args = [[comment(1, { author: null, authorId: null }), edited], [event(4)]] as const
    expect(JSON.parse(textOf(...args))).toEqual({
      schema_version: 1,
      issue: { owner: 'Acme', repo: 'Widgets', number: 7 },
      issue_title: 'T',
      issue_body: 'B',
      labels: ['bug'],
      comments: [
        {
          id: 1,
          author: 'ghost',
          author_association: 'NONE',
          body: 'body 1',
          created_at: iso(1),
          updated_at: iso(1),
        },
        {
          id: 2,
          author: 'ada',
          author_association: 'OWNER',
          body: 'body 2',
          created_at: iso(2),
          updated_at: iso(3),
        },
      ],
      trusted_comments: [expect.objectContaining({ id: 2, body: 'body 2' })],
      events: [{ kind: 'labeled', actor: 'ada', created_at: iso(4), label_name: 'bug' }],
      timeline: [
        { at: iso(1), kind: 'commented', actor: 'ghost', comment_id: 1 },
        { at: iso(2), kind: 'commented', actor: 'ada', comment_id: 2 },
        { at: iso(4), kind: 'labeled', actor: 'ada', label_name: 'bug' },
      ],
      trusted_edits: [{ id: 2, author: 'ada', created_at: iso(2), updated_at: iso(3) }],
      allowed_threads: [2],
      truncation: UNTOUCHED,
      built_at: new Date(NOW).toISOString(),
    })
    expect(textOf(...args)).toBe(textOf(...args))
  })

  test('our own comments and those of ignored authors never come back, trusted or not (C45)', () => {
    const { comments, trusted_comments, timeline, truncation } = contextOf([
      comment(1, { authorId: OWN_ID, author: 'ada' }),
      comment(2, { author: 'grumpy[bot]' }),
      comment(3, { author: 'a[bot]c' }),
      byAda(4),
    ])
    expect(idsOf(comments)).toEqual([3, 4])
    expect(idsOf(trusted_comments)).toEqual([4])
    expect(timeline.map(({ comment_id }) => comment_id)).toEqual([3, 4])
    expect(truncation).toEqual(UNTOUCHED)
  })

  test('without knowing our own account nobody is taken for it', () => {
    const unknown = comment(1, { authorId: null })
    const trust = { ...TRUST, ownId: null }
    expect(buildContext(KEY, ISSUE, [unknown], [], trust, NOW)).toContain('body 1')
  })

  test('trust goes by the exact login', () => {
    const others = ['Ada', 'ada ', 'adam', 'bob'].map((author, at) => comment(at + 1, { author }))
    expect(contextOf([...others, byAda(9)]).allowed_threads).toEqual([9])
  })

  test('only edits by the trusted are edits to trust', () => {
    const updatedAt = minute(50)
    const { trusted_edits } = contextOf([
      comment(1, { updatedAt }),
      byAda(2),
      byAda(3, { updatedAt }),
    ])
    expect(idsOf(trusted_edits)).toEqual([3])
  })

  test('the timeline merges both in the order they happened, and comments stand in it once', () => {
    const commented = event(1, { kind: 'commented' })
    const { timeline, events } = contextOf(
      [comment(1), comment(4)],
      [commented, event(2), event(3), event(5)],
    )
    expect(timeline.map(({ kind }) => kind)).toEqual([
      'commented',
      'labeled',
      'labeled',
      'commented',
      'labeled',
    ])
    expect(events).toHaveLength(3)
  })
})

describe('what is left out when there is too much', () => {
  test('of comments and events the newest 100 of each stay, and the rest is counted', () => {
    const comments = range(130).map((id) => (id <= 10 ? byAda(id) : comment(id)))
    const events = range(150).map((id) => event(id))
    const context = contextOf(comments, events)
    expect(idsOf(context.comments)).toEqual(range(130).slice(30))
    expect(context.events).toHaveLength(100)
    expect(context.events[0]).toMatchObject({ created_at: iso(51) })
    expect(context.truncation).toEqual(
      truncated({
        comments_truncated: true,
        trusted_comments_truncated: true,
        events_truncated: true,
        dropped_untrusted_comments: 20,
        dropped_trusted_comments: 10,
        dropped_events: 50,
      }),
    )
  })

  test('a comment is cut at 64 KiB and says so; the counts are those of the markers', () => {
    const long = '🤖'.repeat(20_000)
    const { comments, truncation } = contextOf([
      comment(1, { body: 'x'.repeat(65_536) }),
      comment(2, { body: long }),
      comment(3, { body: 'x'.repeat(65_600) }),
    ])
    const dropped = comments.map(({ body }) =>
      Number(/<truncated (\d+) bytes>$/.exec(body)?.[1] ?? 0),
    )
    expect(dropped[0]).toBe(0)
    expect(comments.every(({ body }) => Buffer.byteLength(body) <= 65_536)).toBe(true)
    expect(truncation).toEqual(
      truncated({
        body_truncated_count: 2,
        total_body_bytes_dropped: (dropped[1] ?? 0) + (dropped[2] ?? 0),
      }),
    )
  })

  const big = (bytes: number): string => 'x'.repeat(bytes)

  test('a hundred comments of 64 KiB fit into 1 MiB: events go first, then the oldest of the untrusted', () => {
    const comments = range(100).map((id) => comment(id, { body: big(65_536) }))
    const events = range(20).map((id) => event(id))
    const text = textOf(comments, events)
    const context = contextOf(comments, events)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MIB)
    expect(Buffer.byteLength(text)).toBeGreaterThan(MIB - 2 * 66_000)
    const kept = context.comments.length
    expect(idsOf(context.comments)).toEqual(range(100).slice(100 - kept))
    expect(context.truncation).toEqual(
      truncated({
        comments_truncated: true,
        events_truncated: true,
        dropped_events: 20,
        dropped_untrusted_comments: 100 - kept,
      }),
    )
  })

  test('events alone are dropped while that is enough, the oldest first', () => {
    const events = range(100).map((id) => event(id, { label: big(12_000) }))
    const context = contextOf([comment(1), byAda(2)], events)
    expect(idsOf(context.comments)).toEqual([1, 2])
    expect(context.events.length).toBeGreaterThan(0)
    expect(context.events.at(-1)).toMatchObject({ created_at: iso(100) })
    expect(context.truncation).toEqual(
      truncated({ events_truncated: true, dropped_events: 100 - context.events.length }),
    )
  })

  test('a trusted comment outlives every untrusted one, newer or not', () => {
    const comments = range(40).map((id) =>
      id % 4 === 1 ? byAda(id, { body: big(40_000) }) : comment(id, { body: big(40_000) }),
    )
    const context = contextOf(comments)
    expect(idsOf(context.trusted_comments)).toEqual(range(40).filter((id) => id % 4 === 1))
    expect(context.truncation).toMatchObject({ dropped_trusted_comments: 0 })
    const untrusted = range(40).filter((id) => id % 4 !== 1)
    const kept = idsOf(context.comments).filter((id) => id % 4 !== 1)
    expect(kept).toEqual(untrusted.slice(untrusted.length - kept.length))
  })

  test('when all are trusted, the oldest go, from every list', () => {
    const comments = range(30).map((id) => byAda(id, { body: big(50_000), updatedAt: minute(99) }))
    const text = textOf(comments)
    const context = contextOf(comments)
    const kept = range(30).slice(30 - context.comments.length)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MIB)
    expect(kept.length).toBeGreaterThan(5)
    for (const list of [context.comments, context.trusted_comments, context.trusted_edits]) {
      expect(idsOf(list)).toEqual(kept)
    }
    expect([context.allowed_threads, context.timeline.map(({ comment_id }) => comment_id)]).toEqual(
      [kept, kept],
    )
  })

  test('text that JSON writes at six times its length still fits', () => {
    const comments = range(10).map((id) => comment(id, { body: '\u0001'.repeat(65_536) }))
    expect(Buffer.byteLength(textOf(comments))).toBeLessThanOrEqual(MIB)
  })

  test('what cannot be made to fit is a fault that names the issue', () => {
    const labels = range(20).map((id) => `${id}${big(60_000)}`)
    let thrown: unknown = null
    try {
      textOf([byAda(1), comment(2)], [event(3)], { labels })
    } catch (error) {
      thrown = error
    }
    if (!isFault(thrown)) throw new TypeError('no fault')
    expect(thrown.code).toBe('worker/context-too-large')
    expect(thrown.message).toContain('Acme/Widgets#7')
  })
})
