import { describe, expect, test } from '@jest/globals'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import {
  applyEvent,
  type EventName,
  type PhaseEvent,
  TRANSITIONS,
} from '../../daemon/core/transitions.ts'

const AT_MS = Date.parse('2026-01-01T12:00:00.000Z')

const AT = toTimestamp(AT_MS)

const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'

const POLICY = { maxAttempts: 3, backoffSeconds: 300, maxDegradedSeconds: 3600 }

const ERROR = { code: 'worker/exited', message: 'It ended.', at: AT }

type Row = Readonly<{
  from: readonly Phase[]
  on: EventName
  to: Phase
  when?: string
  run: boolean
}>

const ROWS: readonly Row[] = TRANSITIONS

const EVENTS = [...new Set(ROWS.map((row) => row.on))]

const ALL_PHASES: readonly Phase[] = [...new Set(ROWS.flatMap((row) => [...row.from, row.to]))]

/** Conditions of which exactly one holds. */
const OPPOSITES = ['attempts-left attempts-spent', 'interruptions-left interruptions-spent'].concat(
  'degraded-too-long not-degraded-too-long',
)

const NEW = newEntry({ owner: 'Owner', name: 'Repo', number: 1 }, 'code', AT, AT)

const entryIn = (phase: Phase, changed: Partial<QueueEntry> = {}): QueueEntry =>
  Object.freeze({ ...NEW, phase, runId: PHASES[phase].slot ? RUN : null, ...changed })

const event = (on: EventName, changed: Partial<PhaseEvent> = {}): PhaseEvent => ({
  on,
  at: AT,
  runId: RUN,
  error: ERROR,
  ...changed,
})

const rowsFor = (phase: Phase, on: EventName): readonly Row[] =>
  ROWS.filter((row) => row.on === on && row.from.includes(phase))

const after = (entry: QueueEntry, next: PhaseEvent, policy = POLICY): QueueEntry => {
  const applied = applyEvent(entry, next, policy)
  if (applied.kind === 'refused') throw new RangeError(`${next.on}: ${applied.reason}`)
  return applied.entry
}

/** Entries on both sides of every condition. */
const situations = (phase: Phase): readonly QueueEntry[] =>
  [0, 1, 2, 3].flatMap((attempts) =>
    [0, 2, 3, 4].flatMap((interruptions) =>
      [null, AT_MS, AT_MS - 3_600_000, AT_MS - 3_600_001].map((since) =>
        entryIn(phase, {
          attempts,
          interruptions,
          degraded: since === null ? null : { count: 3, since: toTimestamp(since) },
        }),
      ),
    ),
  )

describe('what the table of transitions says', () => {
  test('it speaks of every phase, and of no other', () => {
    expect([...ALL_PHASES].sort()).toEqual(Object.keys(PHASES).sort())
  })

  test('every phase can be reached from a new entry', () => {
    const reached = new Set<Phase>([NEW.phase])
    for (let before = 0; before < reached.size; ) {
      before = reached.size
      for (const row of ROWS) if (row.from.some((phase) => reached.has(phase))) reached.add(row.to)
    }
    expect([...reached].sort()).toEqual(Object.keys(PHASES).sort())
  })

  test('every phase that is not terminal is left by itself; a terminal one only when a human asks', () => {
    const asked: readonly string[] = ['relabelled', 'reset', 'reprocessed']
    for (const phase of ALL_PHASES) {
      const exits = ROWS.filter((row) => row.from.includes(phase)).map((row) => row.on)
      const byItself = exits.filter((on) => !asked.includes(on))
      expect({ phase, byItself: byItself.length > 0 }).toEqual({
        phase,
        byItself: !PHASES[phase].terminal,
      })
      if (PHASES[phase].terminal) expect(exits).toContain('relabelled')
    }
  })

  test('no two rows can match the same situation, and none is missing its opposite', () => {
    for (const phase of ALL_PHASES) {
      for (const on of EVENTS) {
        const conditions = rowsFor(phase, on).map((row) => row.when)
        if (conditions.length <= 1) expect([[], [undefined]]).toContainEqual(conditions)
        else expect(OPPOSITES).toContain(conditions.map(String).sort().join(' '))
      }
    }
  })

  test('an event of a run counts only in the phase a run holds, and there every event is one', () => {
    const wrong = ROWS.filter((row) => row.run !== row.from.every((phase) => PHASES[phase].slot))
    expect(wrong).toEqual([])
  })
})

describe('what applying an event does', () => {
  const everything = ALL_PHASES.flatMap((phase) =>
    EVENTS.flatMap((on) => situations(phase).map((entry) => ({ phase, on, entry }))),
  )

  test('pairs of the table are applied, every other pair is refused', () => {
    for (const { phase, on, entry } of everything) {
      const applied = applyEvent(entry, event(on), POLICY)
      const targets = rowsFor(phase, on).map((row) => row.to)
      if (targets.length === 0) expect(applied).toEqual({ kind: 'refused', reason: 'phase' })
      else expect(targets).toContain(applied.kind === 'applied' ? applied.entry.phase : applied)
    }
  })

  test('both sides of every condition occur', () => {
    for (const row of ROWS) {
      const [from = NEW.phase] = row.from
      const phases = situations(from).map((entry) => after(entry, event(row.on)).phase)
      expect(phases).toContain(row.to)
    }
  })

  test('the entry stays consistent, whatever happens to it', () => {
    for (const { on, entry } of everything) {
      const applied = applyEvent(entry, event(on, { notBefore: AT }), POLICY)
      if (applied.kind === 'refused') continue
      const { phase, runId, nextAttemptAt, blocked, ...next } = applied.entry
      expect(runId).toBe(PHASES[phase].slot ? RUN : null)
      if (phase !== 'queued') expect(nextAttemptAt).toBe(null)
      if (phase !== 'needs_attention') expect(blocked).toBe(null)
      expect(next).toMatchObject({ key: NEW.key, updatedAt: AT, lastRunId: RUN })
      const begins: readonly string[] = ['relabelled', 'reprocessed']
      expect(next.generation).toBe(entry.generation + (begins.includes(on) ? 1 : 0))
    }
  })

  test('an event of another run, or of none, is refused', () => {
    const inProgress = ROWS.filter((row) => row.run).map((row) => row.on)
    const { runId: _, ...withoutRun } = event('blocked')
    for (const on of inProgress) {
      for (const stale of [event(on, { runId: RUN.replace('H', 'K') }), { ...withoutRun, on }]) {
        expect(applyEvent(entryIn('in_progress'), stale, POLICY)).toEqual({
          kind: 'refused',
          reason: 'run',
        })
      }
    }
  })

  test('a claim that names no run is refused', () => {
    const { runId: _, ...withoutRun } = event('claimed')
    expect(applyEvent(entryIn('queued'), withoutRun, POLICY)).toEqual({
      kind: 'refused',
      reason: 'run',
    })
  })
})

describe('how the budgets work', () => {
  const claim = (entry: QueueEntry): QueueEntry => after(entry, event('claimed'))
  const waitOf = (entry: QueueEntry): number | null =>
    entry.nextAttemptAt === null ? null : (Date.parse(entry.nextAttemptAt) - AT_MS) / 1000

  test('two worker failures are tried again, the third is the end, a fourth is impossible', () => {
    const first = after(claim(NEW), event('worker-failed'))
    expect(first).toMatchObject({ phase: 'queued', attempts: 1, lastError: ERROR })
    expect(waitOf(first)).toBe(300)
    const second = after(claim(first), event('worker-failed'))
    expect(second).toMatchObject({ phase: 'queued', attempts: 2 })
    expect(waitOf(second)).toBe(600)
    const third = after(claim(second), event('worker-failed'))
    expect(third).toMatchObject({ phase: 'failed', attempts: 3, nextAttemptAt: null })
    expect(applyEvent(third, event('claimed'), POLICY).kind).toBe('refused')
  })

  test('a budget of one means one attempt', () => {
    const policy = { ...POLICY, maxAttempts: 1 }
    expect(after(claim(NEW), event('worker-failed'), policy).phase).toBe('failed')
  })

  test('failures around the worker cost no attempt, wait longer each time, and escalate', () => {
    let entry = NEW
    for (const wait of [300, 600, 1200]) {
      entry = after(claim(entry), event('infrastructure-failed'))
      expect(entry).toMatchObject({ phase: 'queued', attempts: 0 })
      expect(waitOf(entry)).toBe(wait)
    }
    expect(entry.degraded).toEqual({ count: 3, since: AT })
    const late = toTimestamp(AT_MS + 3_600_001)
    const blocked = { source: 'infrastructure', hint: 'Look.' }
    expect(
      after(claim(entry), event('infrastructure-failed', { at: late, blocked })),
    ).toMatchObject({ phase: 'needs_attention', attempts: 0, blocked })
  })

  test('a run that got somewhere ends the row of failures; one that was cut off does not', () => {
    const degraded = { count: 2, since: AT }
    const entry = entryIn('in_progress', { degraded })
    for (const on of ['worker-failed', 'published', 'previewed', 'findings-posted'] as const) {
      expect(after(entry, event(on)).degraded).toBe(null)
    }
    for (const on of ['interrupted', 'rate-limited', 'not-started'] as const) {
      expect(after(entry, event(on)).degraded).toEqual(degraded)
    }
  })

  test('a rate limit waits exactly as long as it says', () => {
    const notBefore = toTimestamp(AT_MS + 1234)
    const entry = after(entryIn('in_progress'), event('rate-limited', { notBefore }))
    expect(entry).toMatchObject({ phase: 'queued', attempts: 0, nextAttemptAt: notBefore })
  })

  test('three interruptions are tried again at once, the fourth needs attention', () => {
    let entry = NEW
    for (const interruptions of [1, 2, 3]) {
      entry = after(claim(entry), event('interrupted'))
      expect(entry).toMatchObject({ phase: 'queued', attempts: 0, interruptions })
      expect(waitOf(entry)).toBe(null)
    }
    expect(after(claim(entry), event('interrupted')).phase).toBe('needs_attention')
  })

  test('a run that never started leaves everything as it was', () => {
    const { lastRunId: _, ...before } = NEW
    expect(after(claim(NEW), event('not-started'))).toMatchObject(before)
  })

  test('a new label starts over: budget, interruptions, pull request and all', () => {
    for (const phase of ['done', 'failed', 'skipped', 'needs_attention'] as const) {
      const entry = entryIn(phase, {
        attempts: 3,
        interruptions: 2,
        degraded: { count: 1, since: AT },
        pull: { number: 5, url: 'u' },
        lastError: ERROR,
        blocked: { source: 's', hint: 'h' },
        labeledEventId: 1,
      })
      expect(
        after(entry, event('relabelled', { labeledEventId: 2, ticket: 'investigation' })),
      ).toMatchObject({
        phase: 'queued',
        attempts: 0,
        interruptions: 0,
        degraded: null,
        pull: null,
        lastError: null,
        blocked: null,
        labeledEventId: 2,
        ticket: 'investigation',
        generation: 2,
        queuedAt: AT,
      })
    }
  })

  test('success forgets the last error and keeps the pull request', () => {
    const entry = entryIn('in_progress', { lastError: ERROR, attempts: 1 })
    const pull = { number: 9, url: 'https://github.com/o/r/pull/9' }
    const waiting = after(entry, event('published', { pull }))
    expect(waiting).toMatchObject({
      phase: 'awaiting_review',
      pull,
      lastError: null,
      attempts: 1,
    })
    expect(after(waiting, event('merged'))).toMatchObject({ phase: 'done', pull })
    expect(after(waiting, event('closed-unmerged'))).toMatchObject({
      phase: 'needs_attention',
      pull,
      lastError: ERROR,
    })
  })

  test('a preview is promoted with the attempts it had', () => {
    const preview = after(entryIn('in_progress', { attempts: 1 }), event('previewed'))
    expect(after(preview, event('dry-run-ended'))).toMatchObject({ phase: 'queued', attempts: 1 })
  })
})
