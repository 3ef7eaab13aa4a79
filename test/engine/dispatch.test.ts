import { existsSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type Fault, fault, isFault } from '../../daemon/core/fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import { FAULT_CLASSES, type FaultClass } from '../../daemon/core/fault-classes.ts'
import type { Journal, RunStage } from '../../daemon/core/journal.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { GitHub, IssueSummary, Store } from '../../daemon/core/ports.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { applyEvent } from '../../daemon/core/transitions.ts'
import { cancelIneligible, checkEligible } from '../../daemon/engine/check-eligible.ts'
import { type DispatchReport, dispatch } from '../../daemon/engine/dispatch.ts'
import { eventOfFault, recordError, waitOf } from '../../daemon/engine/outcome-of-fault.ts'
import { recover } from '../../daemon/engine/recover.ts'
import type { TickSettings } from '../../daemon/engine/tick-ports.ts'
import { eachBounded } from '../../daemon/sys/bounded-waits.ts'
import { listDirectory } from '../../daemon/sys/files.ts'
import { publicationOf, RUN, START } from '../publish/publish-world.ts'
import { sampleFault } from '../support/faults.ts'
import {
  AT,
  entryOf,
  issueOf,
  KEY,
  RETRY,
  running,
  type Scene,
  TRIGGERS,
  useScene,
} from './engine-scene.ts'

const scene = useScene()

const USABLE = new Set(['acme/widgets', 'acme/gears'])
const GEARS = { ...KEY, name: 'Gears' }
const FIRST = '01ARZ3NDEKTSV4RRFFQ69G5F01'

const go = (change: Partial<TickSettings> = {}): Promise<DispatchReport> =>
  dispatch(scene().with(change), USABLE)
const isHeld = (): boolean => scene().claims.isHeld(KEY)
const claimFiles = (): readonly string[] => listDirectory(scene().layout.directories.claims)

describe('starting a run', () => {
  test('claim, queue, journal, runner: in this order, and then only the runner holds the claim', async () => {
    await scene().put(entryOf(7, { attempts: 1, generation: 3, lastRunId: RUN, labeledEventId: 9 }))
    scene().crossed.length = 0
    expect(await go()).toEqual({ started: [FIRST], problems: [] })
    const order = ['claims.take', 'store.changeQueue', 'journals.write', 'runners.startRunner']
    expect(scene().crossed.filter((name) => order.includes(name))).toEqual(order)
    expect(scene().entry(7)).toMatchObject({ phase: 'in_progress', runId: FIRST, attempts: 1 })
    expect(isHeld()).toBe(true)
    scene().die(FIRST)
    expect(isHeld()).toBe(false)
  })

  test('the journal says all a runner needs', async () => {
    await scene().put(entryOf(7, { attempts: 1, generation: 3, lastRunId: RUN, labeledEventId: 9 }))
    await go({ dryRun: true })
    const { layout, ports } = scene()
    expect(ports.journals.read(FIRST)).toMatchObject({
      runId: FIRST,
      key: KEY,
      ticket: 'code',
      generation: 3,
      previousRunId: RUN,
      attempt: 2,
      dryRun: true,
      build: '/build',
      stage: 'starting',
      epoch: 1,
      branch: `automation/issue-7-${FIRST.toLowerCase()}`,
      treePath: layout.worktree(KEY, FIRST),
      indexPath: layout.run(FIRST).index,
      labeledEventId: 9,
      createdAt: AT,
    })
  })

  test('what every runner needs is looked for once, before anything is claimed', async () => {
    await scene().put(entryOf(7))
    scene().fail('runners.prepareStart before', () => fault('token/not-found', { tried: 't' }))
    const report = await go()
    expect(report).toMatchObject({
      started: [],
      problems: [{ thrown: { code: 'token/not-found' } }],
    })
    expect([scene().entry(7)?.phase, isHeld()]).toEqual(['queued', false])
  })

  test('with nothing to start, nothing is looked for', async () => {
    await scene().put(entryOf(7, { phase: 'done' }))
    await go()
    expect(scene().crossed).not.toContain('runners.prepareStart')
  })
})

describe('what is left alone', () => {
  test.each<[string, () => Promise<void>, Partial<TickSettings>]>([
    [
      'a repository without a usable clone',
      () => scene().put(entryOf(7, { key: { ...KEY, name: 'Other' } })),
      {},
    ],
    [
      'an entry that waits',
      () => scene().put(entryOf(7, { nextAttemptAt: toTimestamp(START + 1) })),
      {},
    ],
    ['a repository that is busy', () => scene().put(entryOf(7), entryOf(8, running())), {}],
    [
      'no free slot, the last one being used by a repository that cannot be polled',
      () => {
        const key = { ...KEY, name: 'Other', number: 1 }
        return scene().put(entryOf(7), entryOf(1, { ...running(), key }))
      },
      { capacity: { parallelism: 1, perRepository: 0 } },
    ],
  ])('%s', async (_, arrange, settings) => {
    await arrange()
    expect(await go(settings)).toEqual({ started: [], problems: [] })
    expect(scene().crossed).not.toContain('claims.take')
  })

  test('an issue that another process has claimed', async () => {
    await scene().put(entryOf(7))
    scene().leave({ runId: RUN }, true)
    expect(await go()).toEqual({ started: [], problems: [] })
    expect(scene().entry(7)?.phase).toBe('queued')
  })

  test('an entry that changed between the look and the claim; its claim file goes again', async () => {
    await scene().put(entryOf(7))
    const { ports } = scene()
    const store: Store = {
      ...ports.store,
      changeQueue: async (change) => {
        await scene().put(entryOf(7, { phase: 'skipped' }))
        return ports.store.changeQueue(change)
      },
    }
    expect(await dispatch({ ...ports, store }, USABLE)).toEqual({ started: [], problems: [] })
    expect([claimFiles(), scene().entry(7)?.phase]).toEqual([[], 'skipped'])
  })

  test('everything after the deadline', async () => {
    await scene().put(entryOf(7))
    scene().advance(100_000)
    expect(await go()).toEqual({ started: [], problems: [] })
  })
})

describe('how many', () => {
  const put = (count: number): Promise<void> =>
    scene().put(...Array.from({ length: count }, (_, at) => entryOf(at + 1)))

  test.each([
    [{ maxClaims: 2, capacity: { parallelism: 9, perRepository: 0 } }, 2],
    [{ maxClaims: 0, capacity: { parallelism: 9, perRepository: 0 } }, 5],
    [{ maxClaims: 0, capacity: { parallelism: 3, perRepository: 0 } }, 3],
    [{ maxClaims: 9, capacity: { parallelism: 9, perRepository: 2 } }, 2],
  ])('%j: %d of five, the first ones', async (settings, count) => {
    await put(5)
    expect((await go(settings)).started).toHaveLength(count)
    const phases = [1, 2, 3, 4, 5].map((number) => scene().entry(number)?.phase)
    expect(phases).toEqual(phases.map((_, at) => (at < count ? 'in_progress' : 'queued')))
  })
})

describe('a run that goes on instead of a new one', () => {
  const OPEN = {
    failures: 3,
    until: toTimestamp(START + 60_000),
    lastError: { code: 'github/failed', message: 'm', at: AT },
  }
  const kept: Partial<Journal> = {
    runId: RUN,
    stage: 'settled',
    epoch: 2,
    endedIn: 'publishing',
    markers: { committed: 'c', pushed: 'c' },
    publication: publicationOf('code'),
    outcome: { on: 'blocked', at: AT, runId: RUN },
  }

  test('starts though a circuit holds new work back', async () => {
    scene().leave(kept, false)
    await scene().put(entryOf(7, { resume: RUN }), entryOf(8))
    await scene().ports.store.changeQueue((queue) => ({
      state: { ...queue, circuits: { 'provider:github': OPEN } },
      value: null,
    }))
    expect((await go({ capacity: { parallelism: 9, perRepository: 0 } })).started).toEqual([RUN])
  })

  test('keeps its id and what it has published, and no other run is begun', async () => {
    scene().leave(kept, false)
    await scene().put(entryOf(7, { resume: RUN, lastRunId: RUN }))
    expect(await go()).toEqual({ started: [RUN], problems: [] })
    expect(scene().ports.journals.read(RUN)).toMatchObject({
      stage: 'publishing',
      epoch: 3,
      markers: kept.markers,
      outcome: null,
      endedIn: null,
    })
    expect(scene().entry(7)).toMatchObject({ phase: 'in_progress', runId: RUN, resume: RUN })
  })

  test.each([
    ['its journal is gone', null],
    ['its journal cannot be read', '{'],
    ['it has nothing to go on with', JSON.stringify({})],
  ])('a new run is begun when %s', async (_, text) => {
    if (text !== null) {
      scene().leave(kept, false)
      writeFileSync(scene().layout.run(RUN).journal, text)
    }
    await scene().put(entryOf(7, { resume: RUN, lastRunId: RUN }))
    expect((await go()).started).toEqual([FIRST])
  })

  test('a claim that came to nothing does not lose it', async () => {
    scene().leave(kept, false)
    await scene().put(entryOf(7, { resume: RUN, lastRunId: RUN }))
    scene().fail('journals.write before', () =>
      sampleFault('sys/io', { operation: 'Writing', path: 'p' }),
    )
    await go()
    scene().mend()
    await recover(scene().ports)
    expect(scene().entry(7)).toMatchObject({ phase: 'queued', resume: RUN })
    expect((await go()).started).toEqual([RUN])
  })
})

describe('a failure at any step', () => {
  const STEPS = ['claims.take', 'store.changeQueue', 'journals.write', 'runners.startRunner']
  const nothingLost = (one: Scene): unknown => ({
    phase: one.entry(7)?.phase,
    runId: one.entry(7)?.runId,
    attempts: one.entry(7)?.attempts,
    isHeld: one.claims.isHeld(KEY),
  })

  test.each(STEPS.flatMap((step) => [`${step} before`, `${step} after`]))(
    '%s: told for that issue, others go on, and the next tick repairs it',
    async (crossing) => {
      const gears = entryOf(1, { key: { ...GEARS, number: 1 } })
      await scene().put(entryOf(7))
      scene().fail(crossing, () => fault('sys/io', { operation: 'x', path: 'y', reason: 'z' }))
      const report = await go()
      expect(report).toMatchObject({ started: [], problems: [{ where: 'Acme/Widgets#7' }] })
      // A runner that was started before the failure lives; here it dies without having begun.
      scene().die(FIRST)
      scene().mend()
      await scene().put(gears)

      await recover(scene().ports)
      expect(nothingLost(scene())).toEqual({
        phase: 'queued',
        runId: null,
        attempts: 0,
        isHeld: false,
      })
      expect(claimFiles()).toEqual([])
      expect((await go()).started).toHaveLength(2)
      expect(scene().entry(7)).toMatchObject({ phase: 'in_progress', attempts: 0 })
    },
  )

  test('one issue’s failure does not stop the other', async () => {
    await scene().put(entryOf(7), entryOf(1, { key: { ...GEARS, number: 1 } }))
    let failed = false
    scene().fail('journals.write before', () => {
      scene().mend()
      failed = true
      return fault('sys/io', { operation: 'x', path: 'y', reason: 'z' })
    })
    const { started, problems } = await go()
    expect([failed, started.length, problems.length]).toEqual([true, 1, 1])
    expect(existsSync(scene().layout.run(started[0] ?? '').journal)).toBe(true)
  })
})

describe('decisions', () => {
  const REPOSITORY_FACTS = {
    id: 1,
    name: { owner: KEY.owner, name: KEY.name },
    defaultBranch: 'main',
    archived: false,
  }
  const UNREACHABLE = fault('github/unreachable', { request: 'r', reason: 'x' })
  const RUN = running().runId ?? ''

  describe('what a fault does to the issue', () => {
    // biome-ignore format: a table is read by its rows
    const TABLE: Readonly<Record<FaultClass, object>> = {
    worker:         { phase: 'queued', attempts: 1, interruptions: 0, degraded: null },
    infrastructure: { phase: 'queued', attempts: 0, degraded: { count: 1 } },
    'rate-limited': { phase: 'queued', attempts: 0, degraded: null, nextAttemptAt: null },
    interrupted:    { phase: 'queued', attempts: 0, interruptions: 1, nextAttemptAt: null },
    cancelled:      { phase: 'skipped', attempts: 0, blocked: null },
    terminal:       { phase: 'needs_attention', attempts: 0 },
    config:         { phase: 'queued', attempts: 0, degraded: { count: 1 } },
    state:          { phase: 'queued', attempts: 0, degraded: { count: 1 } },
    usage:          { phase: 'queued', attempts: 0, degraded: { count: 1 } },
    internal:       { phase: 'queued', attempts: 0, degraded: { count: 1 } },
  }
    const codes = Object.keys(FAULTS) as readonly FaultCode[]

    test.each(codes)('%s', (code) => {
      const met = sampleFault(code)
      const { class: faultClass } = FAULTS[code]
      const event = eventOfFault(met, { runId: RUN, now: START, jitter: 0 })
      const applied = applyEvent(entryOf(7, running()), event, RETRY)
      if (applied.kind === 'refused') throw new RangeError(applied.reason)
      expect(applied.entry).toMatchObject(TABLE[faultClass])
      expect(applied.entry.lastError).toEqual({
        code,
        message: met.message,
        at: toTimestamp(START),
      })
      expect(applied.entry.attempts).toBe(FAULT_CLASSES[faultClass].attempts === '+1' ? 1 : 0)
      const blocked =
        applied.entry.phase === 'needs_attention' ? { source: code, hint: met.next } : null
      expect(applied.entry.blocked).toEqual(blocked)
    })

    test('what is no fault is one of our own', () => {
      expect(recordError(new TypeError('x is not a function'), START)).toMatchObject({
        code: 'internal/unexpected',
        message: expect.stringContaining('x is not a function'),
      })
    })

    const limitedUntil = (untilMs: number) =>
      sampleFault('github/rate-limited', { untilMs, until: toTimestamp(START + 5000) })

    test.each<[string, Fault, number | null]>([
      ['none', sampleFault('github/failed'), null],
      ['milliseconds, which are spread, before text', limitedUntil(START + 1), START + 1],
      ['the past', limitedUntil(START - 5000), START],
      [
        'too far ahead, for no clock may make us wait for ever',
        limitedUntil(START * 2),
        START + LIMITS.rateLimitCapMs,
      ],
    ])('a wait it names: %s', (_, named, wanted) => {
      expect(waitOf(named, START)).toBe(wanted)
    })
  })

  describe('whether an issue still asks for its run', () => {
    type Found = Awaited<ReturnType<GitHub['issue']>>
    const BOTH = [TRIGGERS.code, TRIGGERS.investigation]
    const found = (change: Partial<NonNullable<Found>> = {}): Found => ({
      ...issueOf(7),
      movedTo: null,
      ...change,
    })

    test.each<[string, Found, string]>([
      ['gone', null, 'not found'],
      ['moved', found({ movedTo: { owner: 'o', name: 'r', number: 3 } }), 'moved to o/r#3'],
      ['closed', found({ isOpen: false }), 'closed'],
      ['a pull request', found({ isPullRequest: true }), 'pull request'],
      ['without labels', found({ labels: [] }), 'label was removed'],
      [
        'labelled for the other kind',
        found({ labels: [TRIGGERS.investigation] }),
        'label was removed',
      ],
      ['with both labels', found({ labels: BOTH }), 'oth'],
    ])('no: %s', (_, issue, reason) => {
      const wanted = checkEligible(KEY, 'code', TRIGGERS, issue)
      if (wanted.kind !== 'withdrawn') throw new RangeError(wanted.kind)
      expect(FAULTS[wanted.fault.code].class).toBe('cancelled')
      expect(wanted.fault.message).toContain('Acme/Widgets#7')
      expect(wanted.fault.message).toContain(reason)
    })

    test('yes, and the label is the one on the issue as it is spelled there', () => {
      const issue = found({ labels: ['bug', 'AUTO-fix\uFE0F'] })
      expect(checkEligible(KEY, 'code', TRIGGERS, issue)).toEqual({
        kind: 'wanted',
        issue,
        label: 'AUTO-fix\uFE0F',
      })
    })
  })

  describe('running a task for each', () => {
    test('at most so many at a time, all of them, results in the order of the items', async () => {
      const open: (() => void)[] = []
      let most = 0
      let busy = 0
      const pending = eachBounded([5, 1, 4, 2, 3], 2, async (item) => {
        busy += 1
        most = Math.max(most, busy)
        await new Promise<void>((resolve) => open.unshift(resolve))
        busy -= 1
        return item * 10
      })
      while (open.length > 0) {
        open.shift()?.()
        for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
      }
      expect(await pending).toEqual([50, 10, 40, 20, 30])
      expect(most).toBe(2)
    })

    test('nothing for no items, and a result may be undefined', async () => {
      expect(await eachBounded([], 3, async () => 1)).toEqual([])
      expect(await eachBounded([1, 2], 3, async () => undefined)).toEqual([undefined, undefined])
    })

    test('a task that throws is not swallowed', async () => {
      const thrown = await eachBounded([1], 1, () =>
        Promise.reject(fault('internal/unexpected', { reason: 'x' })),
      ).catch((error: unknown) => error)
      expect(isFault(thrown)).toBe(true)
    })
  })

  describe('workers of issues that are no longer wanted', () => {
    const asked = async (stage: RunStage, found: Partial<IssueSummary> | null) => {
      await scene().put(entryOf(7, running()))
      scene().leave({ stage }, true)
      scene().github.issue = async () =>
        found === null ? null : { ...issueOf(7, found), movedTo: null }
      scene().github.repository = async () => REPOSITORY_FACTS
      const problems = await cancelIneligible(scene().ports)
      return { problems, cancelled: [...scene().cancelled] }
    }

    test.each<[string, Partial<IssueSummary> | null]>([
      ['closed', { isOpen: false }],
      ['unlabelled', { labels: ['bug'] }],
      ['given both labels', { labels: [TRIGGERS.code, TRIGGERS.investigation] }],
      ['gone', null],
    ])('%s: it is ended', async (_, found) => {
      expect(await asked('launching', found)).toEqual({ problems: [], cancelled: [RUN] })
    })

    test('the whole repository is out of sight: the token may be to blame, and nothing is ended', async () => {
      await scene().put(entryOf(7, running()))
      scene().leave({ stage: 'launching' }, true)
      scene().github.issue = async () => null
      scene().github.repository = async () => null
      const problems = await cancelIneligible(scene().ports)
      expect(problems).toMatchObject([{ thrown: { code: 'github/not-found' } }])
      expect(scene().cancelled).toEqual([])
    })

    test('wanted: it goes on', async () => {
      expect(await asked('launching', {})).toEqual({ problems: [], cancelled: [] })
    })

    test.each(['starting', 'owned', 'finished', 'publishing', 'ended'] as const)(
      'at the stage %s there is none to end',
      async (stage) => {
        expect(await asked(stage, { isOpen: false })).toEqual({ problems: [], cancelled: [] })
      },
    )

    test('when GitHub cannot be asked, nothing is ended, and it is told', async () => {
      await scene().put(entryOf(7, running()))
      scene().leave({ stage: 'launching' }, true)
      scene().github.issue = () => Promise.reject(UNREACHABLE)
      expect(await cancelIneligible(scene().ports)).toMatchObject([{ thrown: UNREACHABLE }])
      expect(scene().cancelled).toEqual([])
    })
  })
})
