import { describe, expect, test } from '@jest/globals'
import { GARBAGE_KINDS, type GarbageKind } from '../../daemon/core/garbage.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue-state.ts'
import {
  decideRetention,
  isOldEnough,
  LIVENESS_CLASSES,
  type Liveness,
  livenessOf,
  type RetentionPolicy,
} from '../../daemon/core/retention.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { JOURNAL, publicationOf, RUN, START } from '../publish/publish-world.ts'

const HOUR = 3_600_000

const DAY = 24 * HOUR

const POLICY: RetentionPolicy = { runMs: 30 * DAY, treeMs: 2 * DAY, atticMs: 7 * DAY }

const NEVER = Number.POSITIVE_INFINITY

const OTHER_RUN = RUN.replace(/.$/, 'W')

const ALL_PHASES = Object.keys(PHASES) as Phase[]

/** After which time a run's files and its tree go, by how it stands with its issue. */
const LIMITS_OF_RUNS: Readonly<Record<Liveness, Readonly<{ run: number; tree: number }>>> = {
  'at-work': { run: NEVER, tree: NEVER },
  resuming: { run: NEVER, tree: NEVER },
  previewed: { run: NEVER, tree: 30 * DAY },
  undecided: { run: 30 * DAY, tree: 30 * DAY },
  current: { run: NEVER, tree: 2 * DAY },
  over: { run: 30 * DAY, tree: 2 * DAY },
  unknown: { run: 30 * DAY, tree: 2 * DAY },
  'half-written': { run: HOUR, tree: 2 * DAY },
}

const LIMITS_OF_OTHERS = { temporary: HOUR, folder: HOUR, archived: 7 * DAY } as const

const ALL_STANDINGS = Object.keys(LIVENESS_CLASSES) as Liveness[]

const CASES = (Object.keys(GARBAGE_KINDS) as GarbageKind[]).flatMap((kind) =>
  ALL_STANDINGS.map((standing): [GarbageKind, Liveness, number] => {
    const isOfRun = kind === 'run' || kind === 'tree'
    return [kind, standing, isOfRun ? LIMITS_OF_RUNS[standing][kind] : LIMITS_OF_OTHERS[kind]]
  }),
)

const actionAt = (
  kind: GarbageKind,
  standing: Liveness,
  ageMs: number,
  policy = POLICY,
  isPlain = true,
): string => decideRetention({ kind, isPlain }, standing, START - ageMs, START, policy).action

describe('how long is a leftover kept?', () => {
  test.each(CASES)('%s, its run %s: %d ms, to the millisecond', (kind, standing, limit) => {
    expect(actionAt(kind, standing, -DAY)).toBe('keep')
    expect(actionAt(kind, standing, 0)).toBe('keep')
    if (limit === NEVER) {
      expect(actionAt(kind, standing, 1000 * DAY)).toBe('keep')
      return
    }
    expect(actionAt(kind, standing, limit - 1)).toBe('keep')
    expect(actionAt(kind, standing, limit)).toBe('remove')
    expect(actionAt(kind, standing, 1000 * DAY)).toBe('remove')
  })

  test.each(ALL_STANDINGS)(
    'with the collecting of trees turned off no tree goes (%s)',
    (standing) => {
      const off = { ...POLICY, treeMs: null }
      expect(actionAt('tree', standing, 1000 * DAY, off)).toBe('keep')
      const runs = LIMITS_OF_RUNS[standing].run
      expect(actionAt('run', standing, 1000 * DAY, off)).toBe(runs === NEVER ? 'keep' : 'remove')
    },
  )

  test.each(CASES)('%s that is a link is refused, whatever its age (%s)', (kind, standing) => {
    for (const age of [0, 1000 * DAY]) {
      expect(actionAt(kind, standing, age, POLICY, false)).toBe('refuse')
    }
  })

  test('every verdict says why', () => {
    for (const [kind, standing] of CASES) {
      const verdict = decideRetention({ kind, isPlain: true }, standing, START, START, POLICY)
      expect(verdict.reason).toMatch(/^[a-z].+[a-z]$/)
    }
  })
})

describe('how does a run stand with its issue?', () => {
  const settled: Journal = { ...JOURNAL, stage: 'settled' }
  const entryOf = (change: Partial<QueueEntry> = {}): QueueEntry => ({
    ...newEntry(JOURNAL.key, 'code', toTimestamp(START), toTimestamp(START)),
    lastRunId: RUN,
    ...change,
  })
  const standing = (
    journal: Journal | null,
    entry: QueueEntry | undefined,
    change: Partial<Parameters<typeof livenessOf>[0]> = {},
  ): Liveness =>
    livenessOf({ runId: RUN, isHeld: false, journal, hasFiles: false, entry, ...change })

  test.each<[Phase, Liveness]>([
    ['queued', 'current'],
    ['in_progress', 'current'],
    ['awaiting_review', 'current'],
    ['previewed', 'previewed'],
    ['needs_attention', 'undecided'],
    ['failed', 'undecided'],
    ['skipped', 'over'],
    ['done', 'over'],
  ])('the last run of an issue that is %s is %s', (phase, expected) => {
    expect(standing(settled, entryOf({ phase }))).toBe(expected)
  })

  test.each(ALL_PHASES)('an earlier run, and one without an issue, is over (%s)', (phase) => {
    expect(standing(settled, entryOf({ phase, lastRunId: OTHER_RUN }))).toBe('over')
    expect(standing(settled, undefined)).toBe('over')
  })

  test.each(ALL_PHASES)('whatever is held or in progress is at work (%s)', (phase) => {
    const held = { isHeld: true }
    for (const journal of [settled, { ...JOURNAL, stage: 'starting' } as const, null]) {
      expect(standing(journal, entryOf({ phase }), held)).toBe('at-work')
      expect(standing(journal, undefined, held)).toBe('at-work')
    }
    expect(standing(JOURNAL, entryOf({ phase: 'in_progress', runId: RUN }))).toBe('at-work')
  })

  test('a run that an issue waits to go on with is not given up, though another one was the last', () => {
    const waiting = { phase: 'queued', resume: RUN, lastRunId: OTHER_RUN } as const
    expect(standing(settled, entryOf(waiting))).toBe('resuming')
  })

  test.each(['finished', 'publishing'] as const)(
    'work that is paid for is kept when its issue was withdrawn (%s)',
    (endedIn) => {
      const journal = { ...settled, endedIn }
      expect(standing(journal, entryOf({ phase: 'skipped' }))).toBe('undecided')
    },
  )

  test('work that can go on from its journal is kept', () => {
    const blocked = { on: 'blocked', at: toTimestamp(START), runId: RUN } as const
    const journal: Journal = {
      ...settled,
      outcome: blocked,
      endedIn: 'publishing',
      publication: publicationOf('code'),
    }
    for (const phase of ['needs_attention', 'failed', 'skipped', 'done'] as const) {
      expect(standing(journal, entryOf({ phase }))).toBe('undecided')
    }
  })

  test.each(['owned', 'launching', 'finished', 'publishing', 'ended'] as const)(
    'a run that was dropped at the stage %s is kept as long as work that waits for a human',
    (stage) => {
      const dropped = { ...JOURNAL, stage }
      expect(standing(dropped, undefined)).toBe('undecided')
      expect(standing(dropped, entryOf({ lastRunId: OTHER_RUN }))).toBe('undecided')
      expect(standing(dropped, entryOf({ phase: 'done' }))).toBe('undecided')
    },
  )

  test('a run that never got further than its claim is over', () => {
    expect(standing({ ...JOURNAL, stage: 'starting' }, undefined)).toBe('over')
  })

  test('without a journal it is unknown, or only half written when there is nothing but its folder', () => {
    expect(standing(null, undefined, { hasFiles: true })).toBe('unknown')
    expect(standing(null, undefined)).toBe('half-written')
  })
})

describe('when is an entry old enough to leave the queue?', () => {
  const isOld = (phase: Phase, ageMs: number): boolean => {
    const updatedAt = toTimestamp(START - ageMs)
    const entry = newEntry(JOURNAL.key, 'code', updatedAt, updatedAt)
    return isOldEnough({ ...entry, phase }, START, POLICY)
  }

  test.each(ALL_PHASES)('%s', (phase) => {
    const { terminal } = PHASES[phase]
    expect(isOld(phase, 30 * DAY - 1)).toBe(false)
    expect(isOld(phase, 30 * DAY)).toBe(terminal)
    expect(isOld(phase, -DAY)).toBe(false)
  })
})
