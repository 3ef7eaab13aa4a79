import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'
import { type Crowd, openCrowd, runCrowd } from '../support/crowd.ts'
import {
  bridge,
  type Finished,
  GOOD_BRIDGE,
  LABELS,
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
  treesOf,
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

const FAILING_BRIDGE = bridge(`
open('app.txt', 'a').write('half-done\\n')
print('could not go on', flush=True)
sys.exit(3)`)

describe('is a failing worker tried again, but not for ever?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({
      bridge: FAILING_BRIDGE,
      config: { max_retries_per_issue: 2, retry_backoff_seconds: 300 },
    })
  })
  afterEach(async () => {
    await rig.close()
  })

  /** Moves the clock to so many milliseconds before (or after) the next attempt is due. */
  const goTo = (number: number, afterDueMs: number): void => {
    const due = Date.parse(rig.entry(number)?.nextAttemptAt ?? '')
    rig.clock.advance(due + afterDueMs - rig.clock.now())
  }

  test('attempts are counted, the backoff is kept, and a spent budget is told once with the transcript', async () => {
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual(SILENT)
    const [first] = rig.journals()
    const afterFirst = rig.entry(number)
    expect(afterFirst).toMatchObject({
      phase: 'queued',
      attempts: 1,
      lastError: { code: 'worker/exited', message: 'The worker ended with exit code 3.' },
    })
    const waitMs =
      Date.parse(afterFirst?.nextAttemptAt ?? '') - Date.parse(afterFirst?.updatedAt ?? '')
    expect(waitMs).toBeGreaterThanOrEqual(225_000)
    expect(waitMs).toBeLessThanOrEqual(300_000)
    const report = await reportOf(rig)
    expect(report.next_head).toBeNull()
    expect(report.next_head_earliest_eligibility).toBe(afterFirst?.nextAttemptAt)
    expect(report.recent_errors).toEqual([expect.stringContaining('exit code 3')])

    // The kept tree of a failed attempt is there until the next one begins.
    expect(treesOf(rig)).toEqual([first?.treePath])
    goTo(number, -120_000)
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toHaveLength(1)

    goTo(number, 1)
    const told = await rig.tick()
    const [, second] = rig.journals()
    const { transcript } = rig.layout.run(second?.runId ?? '')
    expect(second).toMatchObject({ attempt: 2 })
    expect(rig.entry(number)).toMatchObject({ phase: 'failed', attempts: 2, nextAttemptAt: null })
    expect(told).toEqual({
      code: 1,
      stdout: '',
      stderr: `caduceus: octo/app#1 needs attention: The worker ended with exit code 3. Its output is in ${transcript}. To try again: caduceus queue reset octo/app#1\n`,
    })
    expect(readFileSync(transcript, 'utf8')).toBe('could not go on\n')
    expect(treesOf(rig)).toEqual([second?.treePath])

    rig.clock.advance(2 * 3_600_000)
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toHaveLength(2)
    expect(await writesOf(rig)).toEqual([])
    const issue = await rig.control('readIssue', { repo: rig.repo, number })
    expect(issue).toMatchObject({ state: 'open', labels: [LABELS.code], comments: [] })
  })

  test('after a failure a success publishes once, and the count of failures does not matter any more', async () => {
    const number = await rig.openIssue()
    await rig.tick()
    rig.setBridge(GOOD_BRIDGE)
    goTo(number, 1)

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      attempts: 1,
      lastError: null,
    })
    expect(await branchesOf(rig)).toHaveLength(1)
    expect(await rig.git('-C', rig.origin, 'show', `${(await branchesOf(rig))[0]}:app.txt`)).toBe(
      'broken\nmended\n',
    )
    expect((await writesOf(rig)).filter((line) => line.startsWith('POST'))).toHaveLength(2)
    expect((await reportOf(rig)).recent_errors).toEqual([])
    expect(treesOf(rig)).toEqual([])
  })

  test('a label set anew by a human starts a new generation; a label that is merely there does not', async () => {
    rig.setConfig({ max_retries_per_issue: 1 })
    const number = await rig.openIssue()
    expect((await rig.tick()).code).toBe(1)
    expect(rig.entry(number)).toMatchObject({ phase: 'failed', attempts: 1 })

    // Whatever else happens to the issue is no new wish.
    await rig.control('commentIssue', { repo: rig.repo, number, actor: 'alice', body: 'Well?' })
    await rig.control('editIssue', { repo: rig.repo, number, actor: 'alice', body: 'Please.' })
    await rig.control('labelIssue', { repo: rig.repo, number, label: 'urgent' })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'failed', generation: 1 })

    rig.setBridge(GOOD_BRIDGE)
    rig.clock.advance(60_000)
    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)?.phase).toBe('failed')
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      generation: 2,
      attempts: 0,
      lastError: null,
    })
    expect(await branchesOf(rig)).toHaveLength(1)
    const [pull] = (await rig.control('listIssues', { repo: rig.repo })).slice(-1)
    expect(pull?.body).toMatch(/kind:pull-request generation:2 -->$/)
  })

  test('a published issue that is opened and labelled again gets a second pull request of its own', async () => {
    rig.setBridge(GOOD_BRIDGE)
    const number = await rig.openIssue()
    await rig.tick()
    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('done')
    rig.clock.advance(60_000)
    await rig.control('reopenIssue', { repo: rig.repo, number, actor: 'alice' })
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code, actor: 'alice' })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      generation: 2,
      pull: { number: 3 },
    })
    const branches = await branchesOf(rig)
    expect(branches).toHaveLength(2)
    const [issue, , pull] = await rig.control('listIssues', { repo: rig.repo })
    expect(issue).toMatchObject({ state: 'closed', labels: [] })
    expect(issue?.comments).toHaveLength(2)
    expect(pull).toMatchObject({ state: 'open', pull: { headBranch: branches.toSorted().at(-1) } })
    expect(await rig.git('-C', rig.origin, 'show', `${pull?.pull?.headBranch ?? ''}:app.txt`)).toBe(
      'broken\nmended\nmended\n',
    )
  })
})
