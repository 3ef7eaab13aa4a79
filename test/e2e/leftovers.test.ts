import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { crashAt } from '../support/crash-runs.ts'
import { makeGitScene, RUN_BRANCH } from '../support/git-scene.ts'
import {
  bridge,
  GOOD_BRIDGE,
  LABELS,
  openProgramRig,
  type ProgramRig,
} from '../support/program-rig.ts'
import {
  expectPublishedOnce,
  newestRun,
  QUIET,
  tickLater,
  treesOf,
} from '../support/program-views.ts'
import { waitUntil } from '../support/wait-until.ts'

const DAY = 86_400_000
const KILLED = -1
const FAILING_BRIDGE = bridge(`
open('app.txt', 'a').write('half-done\\n')
print('could not go on', flush=True)
sys.exit(3)`)

let rig: ProgramRig

describe('what becomes of the tree of a failed attempt?', () => {
  let number: number
  let first: string

  beforeEach(async () => {
    rig = await openProgramRig({
      bridge: FAILING_BRIDGE,
      config: { archive_on_retry: true, attic_retention_days: 2 },
    })
    number = await rig.openIssue()
    expect(await rig.tick()).toEqual(QUIET)
    first = newestRun(rig).runId
    expect(treesOf(rig)).toHaveLength(1)
  })

  afterEach(async () => {
    await rig.close()
  })

  const archive = (): string => join(rig.layout.attic, rig.repo, first)
  const isArchivedWhole = (): boolean =>
    readFileSync(join(archive(), 'app.txt'), 'utf8') === 'broken\nhalf-done\n' &&
    existsSync(join(archive(), '.git', 'HEAD'))

  test('it is kept aside when the next one makes its own, for as long as configured', async () => {
    rig.setBridge(GOOD_BRIDGE)
    expect(await tickLater(rig)).toEqual(QUIET)
    await expectPublishedOnceAfterFailure()
    expect(isArchivedWhole()).toBe(true)
    expect(treesOf(rig)).toEqual([])
    rig.clock.advance(2 * DAY - 7_200_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(isArchivedWhole()).toBe(true)
    rig.clock.advance(7_200_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(existsSync(archive())).toBe(false)
  })

  test('an attempt that did not come to making its tree leaves that to the one after it', async () => {
    await rig.control('addFault', {
      route: 'GET /repos/{owner}/{repo}/issues/{issue_number}/comments',
      action: { kind: 'answer', status: 500, body: { message: 'Server Error' } },
    })
    expect(await tickLater(rig)).toEqual(QUIET)
    const second = newestRun(rig)
    expect([second.runId === first, second.endedIn]).toEqual([false, 'owned'])
    await rig.control('clearFaults', {})
    rig.setBridge(GOOD_BRIDGE)
    expect(await tickLater(rig)).toEqual(QUIET)
    await expectPublishedOnceAfterFailure()
    expect(isArchivedWhole()).toBe(true)
    expect(treesOf(rig)).toEqual([])
  })

  test.each(['git.archiveTree#1:before', 'git.archiveTree#1:after'])(
    'it is never lost nor there twice when the runner is killed at %s',
    async (place) => {
      rig.setBridge(GOOD_BRIDGE)
      rig.clock.advance(3_600_000)
      expect(await crashAt(rig, 'runner', place)).toEqual(QUIET)
      const dead = newestRun(rig)
      await waitUntil('the runner is gone', () => !isLocked(rig.layout.claim(dead.key)))
      const tree = rig.layout.worktree(dead.key, first)
      expect(existsSync(tree)).toBe(place.endsWith('before'))
      expect(existsSync(archive())).toBe(place.endsWith('after'))
      for (let ticks = 0; ticks < 3 && rig.entry(number)?.phase !== 'awaiting_review'; ticks += 1) {
        expect(await tickLater(rig)).toEqual(QUIET)
      }
      await expectPublishedOnceAfterFailure()
      expect([isArchivedWhole(), existsSync(tree)]).toEqual([true, false])
    },
  )

  const expectPublishedOnceAfterFailure = async (): Promise<void> => {
    expect(rig.entry(number)).toMatchObject({ phase: 'awaiting_review', attempts: 1 })
  }
})

describe('what is left of runs that are over?', () => {
  beforeEach(async () => {
    rig = await openProgramRig({ bridge: GOOD_BRIDGE })
  })
  afterEach(async () => {
    await rig.close()
  })

  const refs = async (): Promise<string> =>
    rig.git('-C', rig.layout.store(ownerAndName()), 'for-each-ref', 'refs/runs/')
  const ownerAndName = (): Readonly<{ owner: string; name: string }> => {
    const [owner = '', name = ''] = rig.repo.split('/')
    return { owner, name }
  }
  const merge = async (number: number): Promise<void> => {
    const pull = rig.entry(number)?.pull?.number ?? 0
    await rig.control('mergePull', { repo: rig.repo, number: pull })
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.entry(number)?.phase).toBe('done')
  }

  test('after run_retention_days nothing, and a label set anew begins anew', async () => {
    const number = await rig.openIssue()
    expect(await rig.tick()).toEqual(QUIET)
    await expectPublishedOnce(rig, number)
    await merge(number)
    expect(await refs()).not.toBe('')
    rig.clock.advance(30 * DAY - 3 * 3_600_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.journals()).toHaveLength(1)

    rig.clock.advance(4 * 3_600_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(number)).toBeUndefined()
    expect(readdirSync(rig.layout.directories.runs)).toEqual([])
    expect(await refs()).toBe('')
    expect((await rig.status()).report).not.toBeNull()
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.journals()).toEqual([])

    await rig.control('reopenIssue', { repo: rig.repo, number })
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.entry(number)).toMatchObject({ phase: 'awaiting_review', generation: 1 })
  })

  test.each(['leftovers.remove#1:before', 'leftovers.remove#1:after', 'git.tidyStore#1:after'])(
    'a sweep that is killed at %s is finished by the next one',
    async (place) => {
      const number = await rig.openIssue()
      expect(await rig.tick()).toEqual(QUIET)
      await merge(number)
      rig.clock.advance(31 * DAY)
      expect(await crashAt(rig, 'caduceus', place)).toMatchObject({ code: KILLED })
      expect(await tickLater(rig)).toEqual(QUIET)
      expect(readdirSync(rig.layout.directories.runs)).toEqual([])
      expect([rig.entry(number), await refs()]).toEqual([undefined, ''])
    },
  )

  test('an issue that keeps its label stays in the queue, so that it is not paid for again', async () => {
    rig.setBridge(FAILING_BRIDGE)
    rig.setConfig({ max_retries_per_issue: 1 })
    const number = await rig.openIssue()
    expect((await rig.tick()).code).toBe(1)
    expect(rig.entry(number)?.phase).toBe('failed')
    expect(treesOf(rig)).toHaveLength(1)
    rig.clock.advance(2 * DAY)
    expect(await rig.tick()).toEqual(QUIET)
    expect(treesOf(rig)).toHaveLength(1)

    rig.clock.advance(60 * DAY)
    for (let ticks = 0; ticks < 2; ticks += 1) expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.entry(number)?.phase).toBe('failed')
    expect([rig.journals(), treesOf(rig)]).toEqual([[], []])

    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await tickLater(rig)).toEqual(QUIET)
    expect(rig.entry(number)).toBeUndefined()
  })
})

describe('what does fetching leave alone? (C21, C22)', () => {
  test('the branch a worker has not pushed, and the commits of runs, while others fetch and upstream is rewritten', async () => {
    const scene = makeGitScene()
    try {
      const one = await scene.checkOut('one')
      const work = (...args: readonly string[]): string => scene.run(one.path, ...args)
      work('commit', '-q', '--allow-empty', '-m', 'not pushed')
      const unpushed = work('rev-parse', 'HEAD')
      scene.run(one.storePath, 'update-ref', 'refs/runs/one', one.baseOid)
      scene.run(join(scene.root, 'other'), 'commit', '-q', '--amend', '-m', 'rewritten')
      const rewritten = scene.push({ 'c.txt': 'c' })
      const later = await Promise.all(
        ['two', 'three', 'four', 'five'].map(async (name) => scene.checkOut(name)),
      )
      expect(later.map(({ baseOid }) => baseOid)).toEqual(later.map(() => rewritten))
      expect(work('rev-parse', RUN_BRANCH)).toBe(unpushed)
      expect(work('status', '--porcelain')).toBe('')
      expect(work('fsck', '--strict', '--no-dangling')).toBe('')
      expect(scene.run(one.storePath, 'rev-parse', 'refs/runs/one')).toBe(one.baseOid)
    } finally {
      scene.remove()
    }
  })
})
