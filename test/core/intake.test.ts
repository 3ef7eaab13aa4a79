import { describe, expect, test } from '@jest/globals'
import { closesIssue, openPullClosing } from '../../daemon/core/closing-reference.ts'
import { decideIntake, type IntakeDecision } from '../../daemon/core/intake.ts'
import { addDiagnostics, type Diagnostic } from '../../daemon/core/meta.ts'
import type { IssueSummary } from '../../daemon/core/ports.ts'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { applyEvent } from '../../daemon/core/transitions.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')
const AT = toTimestamp(NOW)
const CHANGED_MS = NOW - 5000
const CHANGED = toTimestamp(CHANGED_MS)
const REPOSITORY = { owner: 'Acme', name: 'Widgets' }
const TRIGGERS = { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' }
const BOTH = [TRIGGERS.code, TRIGGERS.investigation]
const ALL_PHASES = Object.keys(PHASES) as readonly Phase[]

const issue = (labels: readonly string[], change: Partial<IssueSummary> = {}): IssueSummary => ({
  number: 7,
  title: 't',
  body: '',
  author: 'ada',
  labels,
  isOpen: true,
  isPullRequest: false,
  mergedAt: null,
  updatedAt: CHANGED_MS,
  commentCount: 0,
  ...change,
})
const entry = (phase: Phase, seenUpdatedAt = AT): QueueEntry => ({
  ...newEntry({ ...REPOSITORY, number: 7 }, 'code', AT, seenUpdatedAt),
  phase,
})
const decide = (seen: IssueSummary, known?: QueueEntry, dryRun = false): IntakeDecision =>
  decideIntake(REPOSITORY, seen, known, { triggers: TRIGGERS, dryRun, now: NOW })

/** What is decided, in one word. */
function word(decision: IntakeDecision): string {
  if (decision.kind === 'event') return decision.event.on
  return decision.kind === 'note' ? decision.diagnostic.code : decision.kind
}

const LABELS = {
  none: ['bug'],
  code: ['bug', '🤖️ AUTO-FIX'],
  investigation: [TRIGGERS.investigation],
  both: BOTH,
} as const satisfies Record<string, readonly string[]>

// biome-ignore format: a table is read by its rows
const TABLE: Readonly<Record<Phase | 'unknown', Readonly<Record<keyof typeof LABELS | 'closed', string>>>> = {
  unknown:         { none: 'nothing', code: 'enqueue', investigation: 'enqueue', both: 'ambiguous-labels', closed: 'nothing' },
  queued:          { none: 'withdrawn', code: 'nothing', investigation: 'nothing', both: 'ambiguous-labels', closed: 'withdrawn' },
  in_progress:     { none: 'nothing', code: 'nothing', investigation: 'nothing', both: 'ambiguous-labels', closed: 'nothing' },
  awaiting_review: { none: 'nothing', code: 'nothing', investigation: 'nothing', both: 'ambiguous-labels', closed: 'nothing' },
  previewed:       { none: 'withdrawn', code: 'dry-run-ended', investigation: 'dry-run-ended', both: 'ambiguous-labels', closed: 'withdrawn' },
  done:            { none: 'nothing', code: 'look-up-labeling', investigation: 'look-up-labeling', both: 'ambiguous-labels', closed: 'nothing' },
  failed:          { none: 'nothing', code: 'look-up-labeling', investigation: 'look-up-labeling', both: 'ambiguous-labels', closed: 'nothing' },
  needs_attention: { none: 'nothing', code: 'look-up-labeling', investigation: 'look-up-labeling', both: 'ambiguous-labels', closed: 'nothing' },
  skipped:         { none: 'nothing', code: 'look-up-labeling', investigation: 'look-up-labeling', both: 'ambiguous-labels', closed: 'nothing' },
}
const knownEntry = (phase: string): QueueEntry | undefined => {
  const found = ALL_PHASES.find((one) => one === phase)
  return found === undefined ? undefined : entry(found)
}

describe('what an issue of a poll means for the queue', () => {
  test.each(Object.entries(TABLE))(
    '%s: by labels, open or closed',
    (phase, { closed, ...open }) => {
      const known = knownEntry(phase)
      for (const [name, labels] of Object.entries(LABELS)) {
        const wanted = { ...open }[name]
        expect({ name, decided: word(decide(issue(labels), known)) }).toEqual({
          name,
          decided: wanted,
        })
        const shut = decide(issue(labels, { isOpen: false }), known)
        expect({ name, decided: word(shut) }).toEqual({ name, decided: closed })
      }
    },
  )

  test('a pull request never becomes work: noted while labelled and open, whatever is known', () => {
    for (const phase of Object.keys(TABLE)) {
      const known = knownEntry(phase)
      for (const labels of [[TRIGGERS.code], BOTH]) {
        const pull = issue(labels, { isPullRequest: true })
        expect(word(decide(pull, known))).toBe('pull-request-labelled')
        expect(word(decide({ ...pull, isOpen: false }, known))).toBe('nothing')
      }
      expect(word(decide(issue(['bug'], { isPullRequest: true }), known))).toBe('nothing')
    }
  })

  test('a new entry is of the ticket its label names, and remembers when the issue changed', () => {
    expect(decide(issue([TRIGGERS.investigation]))).toEqual({
      kind: 'enqueue',
      entry: newEntry({ ...REPOSITORY, number: 7 }, 'investigation', AT, CHANGED),
    })
  })

  test('a withdrawal says why, and the queue accepts it', () => {
    const policy = { maxAttempts: 3, backoffSeconds: 1, maxDegradedSeconds: 1 }
    for (const [seen, reason] of [
      [issue([]), 'label was removed'],
      [issue([], { isOpen: false }), 'was closed'],
    ] as const) {
      const decision = decide(seen, entry('queued'))
      if (decision.kind !== 'event') throw new RangeError(decision.kind)
      expect(decision.event.error?.message).toContain(reason)
      const applied = applyEvent(entry('queued'), decision.event, policy)
      expect(applied).toMatchObject({ kind: 'applied', entry: { phase: 'skipped' } })
    }
  })

  test('while dry runs are on, a preview stays one', () => {
    expect(word(decide(issue([TRIGGERS.code]), entry('previewed'), true))).toBe('nothing')
  })

  test('what was skipped for its two labels goes on when one of them is gone', () => {
    const error = { code: 'issue/ambiguous', message: 'm', at: AT }
    const skipped = { ...entry('skipped', CHANGED), lastError: error }
    const decision = decide(issue(LABELS.investigation), skipped)
    expect(decision).toMatchObject({
      kind: 'event',
      event: { on: 'relabelled', ticket: 'investigation' },
    })
    expect(word(decide(issue(BOTH), skipped))).toBe('ambiguous-labels')
    expect(word(decide(issue([]), skipped))).toBe('nothing')
  })

  test('after an end nothing is looked up until the issue changes', () => {
    expect(word(decide(issue([TRIGGERS.code]), entry('failed', CHANGED)))).toBe('nothing')
    expect(decide(issue(LABELS.code), entry('failed'))).toEqual({
      kind: 'look-up-labeling',
      label: '🤖️ AUTO-FIX',
      ticket: 'code',
    })
  })
})

describe('the ring of diagnostics', () => {
  const diagnostic = (change: Partial<Diagnostic> = {}): Diagnostic => ({
    at: AT,
    code: 'ambiguous-labels',
    issue: 'o/r#1',
    message: 'm',
    ...change,
  })
  const later = (ms: number): Diagnostic => diagnostic({ at: toTimestamp(NOW + ms) })

  test('the same of the same issue counts once an hour, and then the list stays the same object', () => {
    const ring = addDiagnostics([], [diagnostic()])
    expect(addDiagnostics(ring, [later(3_599_999)])).toBe(ring)
    expect(addDiagnostics(ring, [])).toBe(ring)
    expect(addDiagnostics(ring, [later(3_600_000)])).toHaveLength(2)
    expect(addDiagnostics(ring, [diagnostic({ issue: null })])).toHaveLength(2)
    expect(addDiagnostics(ring, [diagnostic({ code: 'other' })])).toHaveLength(2)
  })

  test('also within one tick, and after the clock was set back', () => {
    const twice = [diagnostic({ message: 'first' }), diagnostic({ message: 'second' })]
    expect(addDiagnostics([], twice)).toEqual([diagnostic({ message: 'first' })])
    expect(addDiagnostics([diagnostic()], [later(-86_400_000)])).toHaveLength(2)
  })

  test('it holds 20 and loses the oldest', () => {
    const many = Array.from({ length: 25 }, (_, at) => diagnostic({ issue: `o/r#${at}` }))
    const ring = addDiagnostics(addDiagnostics([], many.slice(0, 12)), many.slice(12))
    expect(ring).toEqual(many.slice(5))
  })

  test('a message is cut to 256 bytes between characters', () => {
    const messageOf = (message: string): string | undefined =>
      addDiagnostics([], [diagnostic({ message })])[0]?.message
    const fits = `${'é'.repeat(126)}🤖`
    expect(messageOf(fits)).toBe(fits)
    expect(messageOf(`${'x'.repeat(252)}🤖z`)).toBe(`${'x'.repeat(252)}…`)
    expect(messageOf(`x${'é'.repeat(200)}`)).toBe(`x${'é'.repeat(126)}…`)
    expect(Buffer.byteLength(messageOf('🤖'.repeat(100)) ?? '')).toBeLessThanOrEqual(256)
  })
})

describe('which text closes an issue', () => {
  const home = { owner: 'o', name: 'a' }
  const key = { ...home, number: 12 }

  test.each([
    'Fixes #12',
    'fix: it\n\nCLOSES: #12',
    'resolved o/a#12.',
    'It closed https://github.com/O/A/issues/12 and more',
    'closes GH-12',
    'Fixes #1, fixes #12',
    '`code` Closes #12 `code`',
  ])('%s', (text) => {
    expect(closesIssue(text, home, key)).toBe(true)
  })

  test.each([
    'See #12',
    'Fixes #123',
    'prefixes #12',
    'fixes o/b#12',
    'fixes https://github.com/o/b/issues/12',
    '`fixes #12`',
    '```\nfixes #12\n```',
    '<!-- fixes #12 -->',
    '<!-- a > b, closes #12 -->',
    'fixes the thing in #12',
    '',
  ])('not %j', (text) => {
    expect(closesIssue(text, home, key)).toBe(false)
  })

  test('in another repository a bare number means one of its own', () => {
    expect(closesIssue('fixes #12', { owner: 'o', name: 'b' }, key)).toBe(false)
    expect(closesIssue('fixes o/a#12', { owner: 'o', name: 'b' }, key)).toBe(true)
  })

  test('hostile text takes no time', () => {
    const parts = ['fixes ', '`', '<!--', '#', 'https://github.com/', '~~~', 'closes:']
    for (const part of parts) {
      const startedAt = performance.now()
      closesIssue(part.repeat(60_000 / part.length), home, key)
      // Far above what it takes, far below what anything quadratic does.
      expect(performance.now() - startedAt).toBeLessThan(2000)
    }
  })

  test('the first open pull request of a timeline that closes it', () => {
    const at = (number: number, isOpen: boolean, body: string) => ({
      id: 0,
      kind: 'cross-referenced',
      actor: 'bob',
      actorId: 5,
      createdAt: 0,
      label: null,
      pull: { repository: home, number, isOpen, author: 'bob', title: 't', body },
    })
    const events = [at(1, false, 'fixes #12'), at(2, true, 'see #12'), at(3, true, 'fixes #12')]
    expect(openPullClosing(events, key, 'us')?.number).toBe(3)
    expect(openPullClosing(events.slice(0, 2), key, 'us')).toBe(null)
    // Under `close_issue: never` ours only refers to the issue.
    const refers = [at(4, true, 'Refs #12\n\nDone.'), at(5, true, 'Refs #123')]
    expect(openPullClosing(refers, key, 'us')).toBe(null)
    expect(openPullClosing(refers, key, 'bob')?.number).toBe(4)
    expect(openPullClosing(refers.slice(1), key, 'bob')).toBe(null)
  })
})
