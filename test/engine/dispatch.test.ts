import { existsSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import type { Store } from '../../daemon/core/ports.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { type DispatchReport, dispatch } from '../../daemon/engine/dispatch.ts'
import { recover } from '../../daemon/engine/recover.ts'
import type { TickSettings } from '../../daemon/engine/settings.ts'
import { listDirectory } from '../../daemon/sys/files.ts'
import { publicationOf, RUN, START } from '../publish/publish-scene.ts'
import { AT, entryOf, KEY, running, type Scene, useScene } from './engine-scene.ts'

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
      fault('sys/io', { operation: 'Writing', path: 'p' }),
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
