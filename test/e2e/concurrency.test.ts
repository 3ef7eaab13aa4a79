import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'
import { type Crowd, openCrowd, runCrowd } from '../support/crowd.ts'
import {
  type Finished,
  openProgramRig,
  type ProgramRig,
  type RigOptions,
} from '../support/program-rig.ts'
import {
  addRepository,
  allSettled,
  branchesOf,
  closeGate,
  gatedBridge,
  greatestOverlap,
  openGate,
  reportOf,
  startedWorkers,
  toldBy,
  writesOf,
} from '../support/program-views.ts'

const SILENT: Finished = { code: 0, stdout: '', stderr: '' }

describe('how much runs at once?', () => {
  let rig: ProgramRig

  const open = async (options: RigOptions = {}): Promise<void> => {
    rig = await openProgramRig({ bridge: gatedBridge(), ...options })
  }
  afterEach(async () => {
    openGate(rig)
    await allSettled(rig)
    await rig.close()
  })

  const openIssues = async (repo: string, count: number): Promise<void> => {
    const issues = Array.from({ length: count }, (_, index) => ({
      title: `Broken in ${index} places`,
      labels: ['🤖 auto-fix'],
    }))
    await rig.control('createIssues', { repo, issues })
  }

  /** One tick that does not wait for what it starts; returns the issues whose workers are at work then. */
  const startTick = async (running: number): Promise<readonly string[]> => {
    const before = toldBy(rig).length
    expect(await rig.run('run', '--now')).toEqual(SILENT)
    const told = await startedWorkers(rig, running + countOf(toldBy(rig).slice(0, before), 'end'))
    return told.slice(-running).map((line) => line.replace('start ', ''))
  }

  const countOf = (told: readonly string[], what: string): number =>
    told.filter((line) => line.startsWith(what)).length

  /** Lets everything that runs end. */
  const finishRunning = async (): Promise<void> => {
    openGate(rig)
    await allSettled(rig)
    closeGate(rig)
  }

  test('a tick leaves at once, and worker_parallelism bounds what runs over all ticks and repositories', async () => {
    await open({
      config: {
        watched_repos: ['octo/app', 'octo/lib'],
        worker_parallelism: 2,
        max_runs_per_repo: 0,
      },
    })
    await addRepository(rig, 'octo/lib')
    await openIssues('octo/app', 2)
    rig.clock.advance(1000)
    await openIssues('octo/lib', 2)

    await startTick(2)
    const { pool_state, phases, live_workers } = await reportOf(rig)
    expect(pool_state).toEqual({ running: 2, parallelism: 2 })
    expect(phases).toMatchObject({ in_progress: 2, queued: 2 })
    expect(live_workers).toHaveLength(2)
    expect(new Set(live_workers.map(({ stage }) => stage))).toEqual(new Set(['launching']))

    expect(await rig.run('run', '--now')).toEqual(SILENT)
    expect(rig.journals()).toHaveLength(2)

    await finishRunning()
    await startTick(2)
    expect(rig.journals()).toHaveLength(4)
    openGate(rig)
    await allSettled(rig)
    expect(await rig.tick()).toEqual(SILENT)

    expect((await reportOf(rig)).phases).toMatchObject({ awaiting_review: 4, queued: 0 })
    const told = toldBy(rig)
    expect(new Set(told).size).toBe(8)
    expect(told).toHaveLength(8)
    expect(greatestOverlap(told)).toBe(2)
    expect(await branchesOf(rig)).toHaveLength(2)
    expect(await branchesOf(rig, 'octo/lib')).toHaveLength(2)
    expect((await writesOf(rig)).filter((line) => line.endsWith('/pulls'))).toHaveLength(4)
  })

  test('max_runs_per_repo keeps slots free for other repositories, and 0 means no limit', async () => {
    await open({
      config: { watched_repos: ['octo/app', 'octo/lib'], worker_parallelism: 4 },
    })
    await addRepository(rig, 'octo/lib')
    await openIssues('octo/app', 4)
    await openIssues('octo/lib', 1)

    expect([...(await startTick(2))].sort()).toEqual(['octo~app~1', 'octo~lib~1'])
    await rig.run('run', '--now')
    expect(rig.journals()).toHaveLength(2)

    // A second one may start beside the one that runs.
    rig.setConfig({ max_runs_per_repo: 2 })
    await startTick(3)
    expect(rig.journals()).toHaveLength(3)
    rig.setConfig({ max_runs_per_repo: 0 })
    await startTick(4)
    expect(rig.journals()).toHaveLength(4)
    await finishRunning()
    expect(await startTick(1)).toEqual(['octo~app~4'])
    openGate(rig)
    await allSettled(rig)
    expect(greatestOverlap(toldBy(rig))).toBe(4)
    expect(await branchesOf(rig)).toHaveLength(4)
  })

  test('max_issues_per_tick bounds what one tick starts, oldest issue first', async () => {
    await open({
      config: { worker_parallelism: 4, max_runs_per_repo: 4, max_issues_per_tick: 1 },
    })
    await openIssues('octo/app', 3)

    expect(await startTick(1)).toEqual(['octo~app~1'])
    expect((await reportOf(rig)).next_head).toBe('octo/app#2')
    await startTick(2)
    await startTick(3)
    expect(toldBy(rig)).toEqual(['start octo~app~1', 'start octo~app~2', 'start octo~app~3'])
    await rig.run('run', '--now')
    openGate(rig)
    await allSettled(rig)
    expect(await branchesOf(rig)).toHaveLength(3)
  })

  test('while one tick plans, another leaves at once and in silence', async () => {
    await open()
    await rig.openIssue()
    openGate(rig)
    expect(await rig.tick()).toEqual(SILENT)
    await rig.openIssue()
    await rig.control('clearRequests')

    const planning = tryLock(rig.layout.tickLock)
    try {
      expect(await rig.run('run', '--now')).toEqual(SILENT)
      expect((await rig.control('readRequests', {})).total).toBe(0)
      expect(rig.log().at(-1)).toMatchObject({ outcome: 'skipped_concurrent' })
    } finally {
      planning?.close()
    }
  })

  test('ticks fired together, again and again, run every issue once', async () => {
    await open({ config: { worker_parallelism: 3, max_runs_per_repo: 0 } })
    openGate(rig)
    await openIssues('octo/app', 5)

    while (Object.keys(await branchesByIssue()).length < 5) {
      const ticks = [1, 2, 3].map(async () => rig.run('run', '--now', '--wait'))
      expect(await Promise.all(ticks)).toEqual([SILENT, SILENT, SILENT])
    }
    expect(await branchesByIssue()).toEqual({ 1: 1, 2: 1, 3: 1, 4: 1, 5: 1 })
    expect(greatestOverlap(toldBy(rig))).toBeLessThanOrEqual(3)
    expect(toldBy(rig)).toHaveLength(10)
    expect((await writesOf(rig)).filter((line) => line.startsWith('POST'))).toHaveLength(10)
  })

  const branchesByIssue = async (): Promise<Readonly<Record<string, number>>> => {
    const counts: Record<string, number> = {}
    for (const branch of await branchesOf(rig)) {
      const number = branch.split('-')[1] ?? ''
      counts[number] = (counts[number] ?? 0) + 1
    }
    return counts
  }
})

describe('eight ticks at a time, over 12 repositories', () => {
  let crowd: Crowd

  beforeAll(async () => {
    crowd = await openCrowd(12)
  })
  afterAll(async () => {
    await crowd.rig.close()
  })

  test.each([1, 4, 0])(
    'with max_runs_per_repo %i every issue is run once, and never more at once than configured',
    async (perRepository) => {
      const limits = { parallelism: 4, perRepository }
      const { waves, skipped, most, violations } = await runCrowd(crowd, 10, limits)
      expect({ most, violations }).toEqual({ most: 4, violations: [] })
      expect([skipped > 0, skipped <= 7 * waves]).toEqual([true, true])
    },
  )

  test('more at once than is believed would be seen', async () => {
    const limits = { parallelism: 5, perRepository: 2 }
    const believed = { parallelism: 4, perRepository: 1 }
    const { violations } = await runCrowd(crowd, 8, limits, believed)
    const seen = [/^5 at work at: start/, /^2 in one repository at: start/]
    for (const pattern of seen) {
      expect(violations).toContainEqual(expect.stringMatching(pattern))
    }
  })
})
