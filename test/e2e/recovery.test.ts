import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { crashAt, nobodyAtWork } from '../support/crash-runs.ts'
import { makeGitScene, RUN_BRANCH } from '../support/git-scene.ts'
import { waitUntil } from '../support/processes.ts'
import {
  bridge,
  GOOD_BRIDGE,
  LABELS,
  openProgramRig,
  type ProgramRig,
  type Started,
} from '../support/program-rig.ts'
import {
  expectPublishedOnce,
  gatedBridge,
  killNow,
  newestRun,
  openGate,
  processesOfRun,
  QUIET,
  type RunProcesses,
  reportOf,
  startedWorkers,
  tickLater,
  toldBy,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

describe('recovery', () => {
  /** Later than backoff, settle time and deadlines of publishing together. */
  const LATER_MS = 900_000

  /** How the rig tells of a program that was ended by a signal. */
  const KILLED = -1

  describe('what becomes of a run whose processes die while the worker works?', () => {
    let rig: ProgramRig
    let processes: RunProcesses

    beforeEach(async () => {
      rig = await openProgramRig({ bridge: gatedBridge() })
      await rig.openIssue()
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      await startedWorkers(rig, 1)
      processes = await processesOfRun(rig)
    })
    afterEach(async () => {
      await rig.close()
    })

    const isAlive = (pid: number): boolean => identifyProcess(pid) !== null
    const exitReport = (): string => rig.layout.run(newestRun(rig).runId).exit

    /** The next tick takes the run over, while the worker goes on. */
    const adoptAndFinish = async (): Promise<void> => {
      const tick = rig.start('run', '--now', '--wait')
      await waitUntil('the run was taken over', () => newestRun(rig).epoch === 2)
      openGate(rig)
      expect(await tick.finished).toEqual(QUIET)
    }

    test('a killed runner leaves supervisor and worker at work; the next tick goes on with them', async () => {
      await killNow(processes.runner)
      expect([processes.supervisor, processes.worker].map(isAlive)).toEqual([true, true])
      await adoptAndFinish()
      expect(toldBy(rig)).toEqual(['start octo~app~1', 'end octo~app~1'])
      expect(rig.journals()).toHaveLength(1)
      await expectPublishedOnce(rig, 1)
    })

    test('a worker that ends while no runner is there loses nothing', async () => {
      await killNow(processes.runner)
      openGate(rig)
      await waitUntil('the supervisor has reported', () => existsSync(exitReport()))
      expect(await rig.tick()).toEqual(QUIET)
      expect(toldBy(rig)).toEqual(['start octo~app~1', 'end octo~app~1'])
      await expectPublishedOnce(rig, 1)
    })

    test('a runner that is asked to leave does, and the next tick goes on', async () => {
      process.kill(processes.runner, 'SIGTERM')
      await waitUntil('the runner has left', () => !isAlive(processes.runner))
      expect(isAlive(processes.worker)).toBe(true)
      expect(rig.entry(1)?.phase).toBe('in_progress')
      await adoptAndFinish()
      expect(toldBy(rig)).toEqual(['start octo~app~1', 'end octo~app~1'])
      await expectPublishedOnce(rig, 1)
    })

    test('with the supervisor gone too the worker is ended, no attempt is used, and the issue is tried again', async () => {
      await killNow(processes.runner, processes.supervisor)
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      await waitUntil('the interruption is noted', () => rig.entry(1)?.interruptions === 1)
      expect(isAlive(processes.worker)).toBe(false)
      expect(rig.entry(1)).toMatchObject({ attempts: 0, lastError: { code: 'worker/interrupted' } })

      openGate(rig)
      // That tick may have started the next run already.
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      await waitUntil('the issue is published', () => rig.entry(1)?.phase === 'awaiting_review')
      expect(toldBy(rig)).toEqual(['start octo~app~1', 'start octo~app~1', 'end octo~app~1'])
      await expectPublishedOnce(rig, 1)
    })
  })

  describe('what becomes of a run whose process dies at one step?', () => {
    let rig: ProgramRig

    beforeAll(async () => {
      rig = await openProgramRig()
    })
    afterAll(async () => {
      await rig.close()
    })

    test.each([
      'store.changeQueue#1:after',
      'claims.take#1:after',
      'store.changeQueue#2:after',
      'journals.write#1:before',
      'journals.write#1:after',
    ])('a tick killed at %s is made good by the next one', async (place) => {
      const number = await rig.openIssue()
      expect(await crashAt(rig, 'caduceus', place)).toMatchObject({ code: KILLED })
      expect(await rig.tick()).toEqual(QUIET)
      await expectPublishedOnce(rig, number)
    })

    test.each([
      'git.createTree#1:after',
      'executor.launch#1:before',
      'executor.launch#1:after',
      'git.captureTree#1:after',
      'git.pushNewBranch#1:before',
      'git.pushNewBranch#1:after',
      'github.createPullRequest#1:after',
      'github.createComment#1:after',
      'github.closeIssue#1:after',
      'store.changeQueue#1:after',
    ])('a runner killed at %s is made good by the next tick', async (place) => {
      const number = await rig.openIssue()
      expect(await crashAt(rig, 'runner', place)).toEqual(QUIET)
      const dead = newestRun(rig)
      await waitUntil('the runner is gone', () => !isLocked(rig.layout.claim(dead.key)))
      expect(newestRun(rig).stage).not.toBe('settled')
      // Later than any wait. A run that had not begun its worker gives way to another.
      for (let ticks = 0; ticks < 3 && !isPublished(number); ticks += 1) {
        rig.clock.advance(LATER_MS)
        // Not `--wait`: a trouble of this machine would be waited out in real time.
        expect(await rig.run('run', '--now')).toEqual(QUIET)
        await nobodyAtWork(rig)
      }
      await expectPublishedOnce(rig, number)
    })

    const isPublished = (number: number): boolean => rig.entry(number)?.phase === 'awaiting_review'
  })

  describe('what becomes of a tick that waits?', () => {
    let rig: ProgramRig
    let waiting: Started

    beforeEach(async () => {
      rig = await openProgramRig({ bridge: gatedBridge() })
      await rig.openIssue()
      waiting = rig.start('run', '--now', '--wait')
      await startedWorkers(rig, 1)
    })
    afterEach(async () => {
      await rig.close()
    })

    test('a run does not need it', async () => {
      await killNow(waiting.pid)
      expect(await waiting.finished).toMatchObject({ code: KILLED })
      openGate(rig)
      await waitUntil('the run has settled', () => newestRun(rig).stage === 'settled')
      await expectPublishedOnce(rig, 1)
    })

    test('it takes the run over itself when the runner dies', async () => {
      const { runner } = await processesOfRun(rig)
      await killNow(runner)
      await waitUntil('the run was taken over', () => newestRun(rig).epoch === 2)
      openGate(rig)
      expect(await waiting.finished).toEqual(QUIET)
      expect(toldBy(rig)).toEqual(['start octo~app~1', 'end octo~app~1'])
      await expectPublishedOnce(rig, 1)
    })
  })

  describe('what becomes of a publication that GitHub does not answer properly?', () => {
    let rig: ProgramRig

    beforeEach(async () => {
      rig = await openProgramRig()
      await rig.openIssue()
    })
    afterEach(async () => {
      await rig.close()
    })

    const PULLS = 'POST /repos/{owner}/{repo}/pulls'
    const COMMENTS = 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments'

    /** A tick, until its runner has left the run waiting. */
    const runUntilWaiting = async (): Promise<void> => {
      await runUntilLeft()
      expect([rig.entry(1)?.phase, newestRun(rig).notBefore !== null]).toEqual([
        'in_progress',
        true,
      ])
    }

    /** The same, or until it has settled the run. */
    const runUntilLeft = async (): Promise<void> => {
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      await waitUntil('the run waits or is over', () => {
        const { notBefore, key, stage } = newestRun(rig)
        return (notBefore !== null || stage === 'settled') && !isLocked(rig.layout.claim(key))
      })
    }

    /** Nothing is tried before the time; after it the run ends, by itself or after one look for a twin. */
    const finishLater = async (): Promise<void> => {
      await rig.control('clearRequests')
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      expect(await writesOf(rig)).toEqual([])
      for (let looks = 0; looks < 2 && newestRun(rig).stage !== 'settled'; looks += 1) {
        rig.clock.advance(LATER_MS)
        await runUntilLeft()
      }
      await expectPublishedOnce(rig, 1)
      expect(rig.journals()).toHaveLength(1)
    }

    test.each([
      [
        'a comment that was made, but answered with 500',
        COMMENTS,
        { kind: 'answer', status: 500, effect: true },
      ],
      [
        'a comment that was not made, and answered with 500',
        COMMENTS,
        { kind: 'answer', status: 500 },
      ],
      [
        'a pull request that was made, but whose answer was lost',
        PULLS,
        { kind: 'reset', effect: true },
      ],
      [
        'a pull request that was not made, and whose answer was lost',
        PULLS,
        { kind: 'reset', effect: false },
      ],
    ] as const)('%s is there exactly once in the end', async (_, route, action) => {
      await rig.control('addFault', { route, occurrence: 1, action })
      await runUntilWaiting()
      expect(newestRun(rig).intent).not.toBeNull()
      await finishLater()
    })

    test('a push that broke off after it arrived is not made twice', async () => {
      breakOffFirstPush(rig)
      await runUntilWaiting()
      expect(newestRun(rig).intent?.stage).toBe('pushed')
      await finishLater()
    })

    test('a limit of GitHub in the middle of a publication is waited for', async () => {
      const action = { kind: 'primary-limit', resetInSeconds: 600 } as const
      await rig.control('addFault', { route: PULLS, occurrence: 1, action })
      await runUntilWaiting()
      expect((await reportOf(rig)).rate_limited_until).not.toBeNull()
      await finishLater()
      expect(await reportOf(rig)).toMatchObject({ rate_limited_until: null, recent_errors: [] })
    })
  })

  /** A git whose first push fails although it arrived, as with a connection that breaks. */
  function breakOffFirstPush(rig: ProgramRig): void {
    const done = join(rig.dir, 'home', 'pushed')
    const text = `#!/bin/sh
PATH=\${PATH#*:}
case " $* " in
  *" push "*) [ -e ${done} ] || { : >${done}; git "$@" >/dev/null 2>&1; echo 'fatal: the remote end hung up unexpectedly' >&2; exit 128; } ;;
esac
exec git "$@"
`
    writeFileSync(join(rig.dir, 'bin', 'git'), text, { mode: 0o755 })
  }
})

describe('leftovers', () => {
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
        for (
          let ticks = 0;
          ticks < 3 && rig.entry(number)?.phase !== 'awaiting_review';
          ticks += 1
        ) {
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

    test.each(['garbage.remove#1:before', 'garbage.remove#1:after', 'git.tidyStore#1:after'])(
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
})
