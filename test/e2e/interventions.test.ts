import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { crashPlace, underPreload } from '../support/crash-runs.ts'
import { waitUntil } from '../support/processes.ts'
import { LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  branchesOf,
  expectPublishedOnce,
  gatedBridge,
  killNow,
  newestRun,
  openGate,
  processesOfRun,
  QUIET,
  reportOf,
  startedWorkers,
  toldBy,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

// What people and the system do to work that is under way.

let rig: ProgramRig
afterEach(async () => {
  await rig.close()
})

const isAlive = (pid: number): boolean => identifyProcess(pid) !== null
const settled = (): Promise<unknown> =>
  waitUntil('the run has settled', () => newestRun(rig).stage === 'settled')

describe('an issue is withdrawn while its worker runs', () => {
  beforeEach(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await startedWorkers(rig, 1)
  })

  const issue = { number: 1, actor: 'alice' }

  test.each<[string, () => Promise<unknown>, string]>([
    [
      'its label is removed',
      () => rig.control('unlabelIssue', { ...issue, repo: rig.repo, label: LABELS.code }),
      'its label was removed',
    ],
    [
      'it is closed',
      () => rig.control('closeIssue', { ...issue, repo: rig.repo }),
      'it was closed',
    ],
    [
      'it is moved elsewhere',
      async () => {
        await rig.control('createRepository', { repo: 'octo/other' })
        await rig.control('transferIssue', { ...issue, repo: rig.repo, to: 'octo/other' })
      },
      'it moved to octo/other#1',
    ],
  ])('%s: within one tick the worker is ended, and nothing is published', async (_, act, why) => {
    const { worker } = await processesOfRun(rig)
    await act()
    await rig.control('clearRequests')
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await waitUntil('the worker is gone', () => !isAlive(worker))
    await settled()
    expect(rig.entry(1)).toMatchObject({
      phase: 'skipped',
      attempts: 0,
      lastError: { code: 'issue/withdrawn', message: `octo/app#1 was withdrawn: ${why}.` },
    })
    expect([await branchesOf(rig), await writesOf(rig), treesOf(rig)]).toEqual([[], [], []])
    expect(toldBy(rig)).toEqual(['start octo~app~1'])
  })

  test('GitHub limits requests: the worker is left alone until it can be asked again', async () => {
    const { worker } = await processesOfRun(rig)
    await rig.control('addFault', {
      route: 'GET /repos/{owner}/{repo}/issues/{issue_number}',
      occurrence: 1,
      action: { kind: 'primary-limit', resetInSeconds: 600 },
    })
    await rig.control('closeIssue', { ...issue, repo: rig.repo })
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    expect((await reportOf(rig)).rate_limited_until).not.toBeNull()
    expect(isAlive(worker)).toBe(true)
    rig.clock.advance(700_000)
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await settled()
    expect([isAlive(worker), rig.entry(1)?.phase]).toEqual([false, 'skipped'])
  })
})

describe('a process is stopped, not dead', () => {
  /** One tick in which a process stops itself at an effect. */
  const stopAt = async (bundle: string, place: string): Promise<void> => {
    const env = { ...crashPlace(bundle, place), TEST_CRASH_SIGNAL: 'SIGSTOP' }
    await underPreload(rig, env, async () => {
      const tick = rig.start('run', '--now')
      stopped = { pid: tick.pid }
      if (bundle === 'runner') expect(await tick.finished).toEqual(QUIET)
      else await waitUntil('the tick has stopped', () => stateOf(tick.pid) === 'stopped')
    })
  }
  let stopped: { pid: number } | null = null
  const stateOf = (pid: number): string => {
    const text = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ''
    return /\) [tT] /.test(text) ? 'stopped' : 'other'
  }

  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
  })

  test.each([
    'github.createPullRequest#1:before',
    'github.createPullRequest#1:after',
    'git.pushNewBranch#1:after',
  ])(
    'a runner stopped at %s is ended when its time is over, and the effect is there once',
    async (place) => {
      await stopAt('runner', place)
      const runner = await waitUntil('the runner has stopped', () => {
        const pid = newestRun(rig).runner?.pid
        return pid !== undefined && stateOf(pid) === 'stopped' && pid
      })
      // Its claim is held, so it counts as alive …
      rig.clock.advance(600_000)
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      expect([newestRun(rig).epoch, isAlive(runner)]).toEqual([1, true])
      // … until it should have written again.
      rig.clock.advance(900_000)
      expect(await rig.tick()).toEqual(QUIET)
      expect([newestRun(rig).epoch, isAlive(runner)]).toEqual([2, false])
      await expectPublishedOnce(rig, 1)
    },
  )

  test('a tick that is stopped while it plans keeps later ones out only until its time is over', async () => {
    await stopAt('caduceus', 'store.changeMeta#1:before')
    const pid = stopped?.pid ?? 0
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    expect([rig.journals(), isAlive(pid)]).toEqual([[], true])
    rig.clock.advance(120_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(isAlive(pid)).toBe(false)
    await expectPublishedOnce(rig, 1)
  })
})

describe('a claim is taken away from a living run', () => {
  test('it stops before its next write, and the one that has the claim goes on', async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await startedWorkers(rig, 1)
    const { runner } = await processesOfRun(rig)
    rmSync(rig.layout.claim(newestRun(rig).key))
    openGate(rig)
    await waitUntil('its runner has left', () => !isAlive(runner))
    expect(await branchesOf(rig)).toEqual([])
    expect(await rig.tick()).toEqual(QUIET)
    expect(toldBy(rig)).toEqual(['start octo~app~1', 'end octo~app~1'])
    await expectPublishedOnce(rig, 1)
  })
})

describe('a runner dies while git pushes for it', () => {
  test('the push it leaves behind is ended before anybody else acts', async () => {
    rig = await openProgramRig()
    await rig.openIssue()
    const note = join(rig.dir, 'home', 'push')
    const text = `#!/bin/sh
PATH=\${PATH#*:}
case " $* " in
  *" push "*) [ -e ${note} ] || { echo $$ >${note}.new; mv ${note}.new ${note}; exec sleep 600; } ;;
esac
exec git "$@"
`
    writeFileSync(join(rig.dir, 'bin', 'git'), text, { mode: 0o755 })
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    const push = await waitUntil('git pushes', () => {
      return existsSync(note) && Number(readFileSync(note, 'utf8'))
    })
    await killNow(newestRun(rig).runner?.pid ?? 0)
    expect(isAlive(push)).toBe(true)
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    expect(isAlive(push)).toBe(false)
    await waitUntil('the run waits for what the push may have done', () => {
      const { notBefore, key } = newestRun(rig)
      return notBefore !== null && !isLocked(rig.layout.claim(key))
    })
    rig.clock.advance(900_000)
    expect(await rig.tick()).toEqual(QUIET)
    await expectPublishedOnce(rig, 1)
  })
})

describe('a command is told to stop', () => {
  beforeEach(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s ends a waiting run at once; its runs go on without it',
    async (signal) => {
      const waiting = rig.start('run', '--now', '--wait')
      await startedWorkers(rig, 1)
      process.kill(waiting.pid, signal)
      expect(await waiting.finished).toEqual(QUIET)
      openGate(rig)
      await settled()
      await expectPublishedOnce(rig, 1)
    },
  )

  test('a tick that is told to stop ends the step in hand, begins no other, and leaves no trace', async () => {
    await rig.control('addFault', {
      route: 'GET /repos/{owner}/{repo}/issues',
      occurrence: 1,
      delayMs: 1500,
      action: { kind: 'delay' },
    })
    const tick = rig.start('run', '--now')
    await waitUntil('it has asked', async () => {
      const { entries } = await rig.control('readRequests', {})
      return entries.some(({ path }) => path.endsWith('/issues'))
    })
    process.kill(tick.pid, 'SIGTERM')
    expect(await tick.finished).toEqual(QUIET)
    expect([rig.journals(), isLocked(rig.layout.tickLock)]).toEqual([[], false])
    expect(rig.meta().lastOutcome).toBe('cancelled')
    openGate(rig)
    expect(await rig.tick()).toEqual(QUIET)
    await expectPublishedOnce(rig, 1)
  })
})

describe('somebody is faster than the daemon', () => {
  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
  })

  const openPullBy = async (author: string, body: string): Promise<void> => {
    const { repo } = rig
    await rig.control('pushCommit', {
      repo,
      branch: 'by-hand',
      files: { 'x.txt': 'x\n' },
      message: 'x',
    })
    await rig.control('createPull', {
      repo,
      author,
      title: 'x',
      body,
      head: 'by-hand',
      base: 'main',
    })
  }

  test('with a pull request that closes the issue: skipped, and it is named', async () => {
    await openPullBy('alice', 'Fixes #1')
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(1)).toMatchObject({ phase: 'skipped', attempts: 0 })
    expect(rig.entry(1)?.lastError?.message).toContain('octo/app#2 by alice')
    expect(await branchesOf(rig)).toEqual([])
  })

  test('with existing_pr: ignore it is worked on all the same', async () => {
    rig.setConfig({ existing_pr: 'ignore' })
    await openPullBy('alice', 'Fixes #1')
    expect(await rig.tick()).toEqual(QUIET)
    await expectPublishedOnce(rig, 1)
  })
})

describe('the pull request does not end as hoped', () => {
  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
    expect(await rig.tick()).toEqual(QUIET)
    await expectPublishedOnce(rig, 1)
  })

  test('closed unmerged: the issue we closed is open again, and a human is told the exact command', async () => {
    const number = rig.entry(1)?.pull?.number ?? 0
    await rig.control('closeIssue', { repo: rig.repo, number, actor: 'alice' })
    const { code, stderr } = await rig.tick()
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('To try again: caduceus queue reprocess octo/app#1'),
    ])
    expect(await rig.control('readIssue', { repo: rig.repo, number: 1 })).toMatchObject({
      state: 'open',
    })
    expect(rig.entry(1)?.blocked?.source).toBe('publish/closed-unmerged')
    // Told once.
    expect(await rig.tick()).toEqual(QUIET)
  })

  test('merged: done', async () => {
    const number = rig.entry(1)?.pull?.number ?? 0
    await rig.control('mergePull', { repo: rig.repo, number, actor: 'alice' })
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(1)?.phase).toBe('done')
  })
})
