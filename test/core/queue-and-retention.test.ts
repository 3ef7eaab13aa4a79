import { describe, expect, test } from '@jest/globals'
import { closeCircuits } from '../../daemon/core/circuit-changes.ts'
import { fateOfRun, giveUpRun } from '../../daemon/core/fate-of-run.ts'
import { FAULTS } from '../../daemon/core/fault-catalogue.ts'
import { GARBAGE_KINDS, type GarbageKind } from '../../daemon/core/garbage.ts'
import { type Journal, RUN_STAGES, type RunStage } from '../../daemon/core/journal.ts'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { QUEUE_VERBS, type QueueVerb, refusalHint } from '../../daemon/core/queue-verbs.ts'
import { resumableStage } from '../../daemon/core/resume.ts'
import {
  decideRetention,
  isOldEnough,
  LIVENESS_CLASSES,
  type Liveness,
  livenessOf,
  type RetentionPolicy,
} from '../../daemon/core/retention.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { applyEvent } from '../../daemon/core/transitions.ts'
import { JOURNAL, publicationOf, RUN, START } from '../publish/publish-world.ts'

describe('a change of the queue by hand', () => {
  const NOW = Date.parse('2026-01-01T12:00:00.000Z')
  const AT = toTimestamp(NOW)
  const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'
  const KEY = { owner: 'Octo', name: 'App', number: 7 }
  const RETRY = { maxAttempts: 3, backoffSeconds: 300, maxDegradedSeconds: 3600 }
  const VERBS = Object.keys(QUEUE_VERBS) as readonly QueueVerb[]
  const ALL_PHASES = Object.keys(PHASES) as readonly Phase[]
  const ALL_STAGES = Object.keys(RUN_STAGES) as readonly RunStage[]

  const entryIn = (phase: Phase, changed: Partial<QueueEntry> = {}): QueueEntry => ({
    ...newEntry(KEY, 'code', AT, AT),
    phase,
    lastRunId: RUN,
    runId: PHASES[phase].slot ? RUN : null,
    ...changed,
  })

  const journalAt = (stage: RunStage, changed: Partial<Journal> = {}): Journal => ({
    runId: RUN,
    key: KEY,
    ticket: 'code',
    generation: 1,
    previousRunId: null,
    attempt: 1,
    dryRun: false,
    build: '/build',
    createdAt: AT,
    epoch: 4,
    adoptions: 0,
    stage,
    branch: 'automation/issue-7-x',
    base: null,
    remote: null,
    treePath: '/tree',
    indexPath: '/index',
    label: 'auto',
    labeledEventId: null,
    runner: null,
    ownedUntil: null,
    publication: null,
    markers: {},
    intent: null,
    notBefore: AT,
    trouble: null,
    outcome: null,
    endedIn: null,
    ...changed,
  })

  /** A run that a forbidden word stopped after its worker had succeeded. */
  const STOPPED = journalAt('settled', {
    endedIn: 'finished',
    outcome: { on: 'blocked', at: AT, runId: RUN },
  })
  const HALF_PUBLISHED: Journal = {
    ...STOPPED,
    endedIn: 'publishing',
    markers: { committed: 'a'.repeat(40), pushed: 'a'.repeat(40) },
    publication: {
      plan: 'code',
      commitMessage: 'fix: x',
      commitDateSeconds: 1,
      pullTitle: 'fix: x',
      pullBody: 'x',
      comment: 'x',
      actorId: 1,
      actorLogin: 'bot',
      treeOid: 'b'.repeat(40),
      changedFiles: 1,
    },
  }

  describe('what may a command do to an entry in each phase?', () => {
    const ALLOWED = {
      reset: ['failed', 'needs_attention', 'skipped'],
      reprocess: [
        'done',
        'failed',
        'in_progress',
        'needs_attention',
        'previewed',
        'queued',
        'skipped',
      ],
    } as const satisfies Record<QueueVerb, readonly Phase[]>

    test.each(VERBS)('%s is allowed exactly in the phases that R§1.7 and R§1.8 name', (verb) => {
      const allowed = ALL_PHASES.filter((phase) => refusalHint(verb, entryIn(phase)) === null)
      expect(allowed).toEqual(ALLOWED[verb])
    })

    test.each(VERBS)('what %s allows is what the table of transitions knows', (verb) => {
      const known = ALL_PHASES.filter((phase) => {
        const event = { on: QUEUE_VERBS[verb].event, at: AT } as const
        return applyEvent(entryIn(phase), event, RETRY).kind === 'applied'
      })
      expect(known).toEqual(ALLOWED[verb])
    })

    test('every refusal says what to do instead, and names the issue where it names a command', () => {
      for (const verb of VERBS) {
        for (const phase of ALL_PHASES) {
          const hint = refusalHint(verb, entryIn(phase))
          if (hint === null) continue
          expect(hint).toMatch(/^[A-Z].*(?:[a-z]\.|#7)$/)
          expect(hint).not.toContain('{')
          for (const [, after] of hint.matchAll(/caduceus queue \w+ (\S+?)(?=[.\s]|$)/g)) {
            expect(after).toBe('Octo/App#7')
          }
        }
      }
      expect(FAULTS['queue/refused'].next).toBe('{hint}')
    })
  })

  describe('what becomes of the last run?', () => {
    const KEPT = { isRetained: true, isForced: false }
    const needy = entryIn('needs_attention')

    test('a reset lets paid work go on at the stage in which it was stopped', () => {
      expect(fateOfRun('reset', needy, STOPPED, KEPT)).toEqual({
        kind: 'resumed',
        runId: RUN,
        stage: 'finished',
      })
      expect(fateOfRun('reset', needy, HALF_PUBLISHED, KEPT)).toMatchObject({
        kind: 'resumed',
        stage: 'publishing',
      })
    })

    test('a forced reset and a reprocess drop it, and say so', () => {
      const dropped = { kind: 'dropped', runId: RUN, stage: 'finished' }
      expect(fateOfRun('reset', needy, STOPPED, { ...KEPT, isForced: true })).toEqual(dropped)
      expect(fateOfRun('reprocess', needy, STOPPED, KEPT)).toEqual(dropped)
    })

    test('work that is not there any more does not go on; what is frozen does not need it', () => {
      const lost = { isRetained: false, isForced: false }
      expect(fateOfRun('reset', needy, STOPPED, lost)).toEqual({ kind: 'nothing' })
      expect(fateOfRun('reset', needy, HALF_PUBLISHED, lost)).toMatchObject({ kind: 'resumed' })
    })

    test('a run of an earlier generation never goes on for a later one', () => {
      const later = entryIn('skipped', { generation: 2 })
      expect(fateOfRun('reset', later, STOPPED, KEPT)).toEqual({ kind: 'nothing' })
    })

    test('without a journal there is nothing, whatever the command', () => {
      for (const verb of VERBS) {
        expect(fateOfRun(verb, needy, null, KEPT)).toEqual({ kind: 'nothing' })
      }
    })

    test('a run that has begun and is not decided is dropped; one that has not, or is, tells nothing', () => {
      const dropped = ALL_STAGES.filter(
        (stage) =>
          fateOfRun('reprocess', entryIn('in_progress'), journalAt(stage), KEPT).kind !== 'nothing',
      )
      expect(dropped).toEqual(['owned', 'launching', 'finished', 'publishing'])
    })
  })

  describe('how is a run given up?', () => {
    const UNDECIDED: readonly RunStage[] = ['owned', 'launching', 'finished', 'publishing']

    test.each(['starting', 'settled'] as const)('a journal at %s is left as it is', (stage) => {
      const before = journalAt(stage)
      expect(giveUpRun(before)).toBe(before)
    })

    test.each(UNDECIDED)('one at %s says so, and neither it nor its owner goes on', (stage) => {
      const before = journalAt(stage)
      const after = giveUpRun(before)
      const changed = { stage: 'settled', epoch: 5, notBefore: null, endedIn: stage }
      expect(after).toEqual({ ...before, ...changed })
      expect(resumableStage(after)).toBeNull()
    })

    test('what ended a run before stays known, and what may go on still may', () => {
      const after = giveUpRun({ ...STOPPED, stage: 'ended' })
      expect(after).toMatchObject({
        stage: 'settled',
        endedIn: 'finished',
        outcome: STOPPED.outcome,
      })
      expect(resumableStage(after)).toBe('finished')
      expect(giveUpRun(journalAt('ended')).endedIn).toBeNull()
    })
  })

  describe('which circuits does an operator close?', () => {
    const POLICY = { threshold: 3, backoffSeconds: [60], openSeconds: 600 }
    const circuit = (failures: number, untilMs: number) => ({
      failures,
      until: toTimestamp(NOW + untilMs),
      lastError: { code: 'git/failed', message: 'It failed.', at: AT },
    })

    test('those of the repository and of GitHub go; those that kept work back are named; others stay', () => {
      const circuits = {
        'provider:github': circuit(3, 600_000),
        'repository:octo/app': circuit(1, -1000),
        'repository:octo/other': circuit(3, 600_000),
      }
      expect(closeCircuits(circuits, KEY, NOW, POLICY)).toEqual({
        circuits: { 'repository:octo/other': circuits['repository:octo/other'] },
        closed: ['provider:github'],
      })
    })

    test('with none to close the circuits are the same object', () => {
      const circuits = { 'repository:octo/other': circuit(3, 600_000) }
      const { circuits: after, closed } = closeCircuits(circuits, KEY, NOW, POLICY)
      expect(after).toBe(circuits)
      expect(closed).toEqual([])
    })
  })
})

describe('what is kept, and how long', () => {
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
})
