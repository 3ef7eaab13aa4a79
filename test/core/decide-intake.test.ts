import { describe, expect, test } from '@jest/globals'
import { decideIntake, type IntakeDecision } from '../../daemon/core/decide-intake.ts'
import type { IssueSummary } from '../../daemon/core/ports.ts'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { applyEvent } from '../../daemon/core/transitions.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')

const AT = toTimestamp(NOW)

const CHANGED_MS = NOW - 5000

const CHANGED = toTimestamp(CHANGED_MS)

const BEFORE_MS = CHANGED_MS - 1000

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

const entry = (phase: Phase, seenUpdatedAt = toTimestamp(BEFORE_MS)): QueueEntry => ({
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

  test('a list that is behind what was seen withdraws nothing', () => {
    const behind = BEFORE_MS - 1
    for (const phase of ['queued', 'previewed'] as const) {
      expect(word(decide(issue([], { updatedAt: behind }), entry(phase)))).toBe('nothing')
      expect(word(decide(issue([]), entry(phase)))).toBe('withdrawn')
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
