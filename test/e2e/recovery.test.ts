import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { crashAt } from '../support/crash-runs.ts'
import { openProgramRig, type ProgramRig, type Started } from '../support/program-rig.ts'
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
  toldBy,
  writesOf,
} from '../support/program-views.ts'
import { waitUntil } from '../support/wait-until.ts'

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
      expect(await rig.tick()).toEqual(QUIET)
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
    expect([rig.entry(1)?.phase, newestRun(rig).notBefore !== null]).toEqual(['in_progress', true])
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
