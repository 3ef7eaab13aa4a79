import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { endProcesses } from '../../daemon/supervisor/end-processes.ts'
import type { ProcessTree } from '../../daemon/supervisor/process-tree.ts'
import { childrenOf, identifyProcess } from '../../daemon/sys/process-identity.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'
import { actorsOf } from '../support/start-actor.ts'
import { buildSupervisor, fixture, type Rig, shell } from '../support/supervisor-rig.ts'
import { waitUntil } from '../support/wait-until.ts'

const supervisor = buildSupervisor()
let rig: Rig

beforeEach(() => {
  rig = supervisor.open()
})
afterEach(() => rig.close())
afterAll(() => supervisor.remove())

describe('what a worker cannot leave behind after a good end', () => {
  test.each([
    ['a child that holds its output', shell('sleep 600 & exit 0'), 1],
    ['a child in another session that holds its output', shell('setsid sleep 600 & exit 0'), 1],
    ['a daemon that forked twice', [fixture('escapes-session')], 1],
    ['a stopped child', shell('sleep 600 & kill -STOP $!; exit 0'), 1],
    ['a child that ignores signals', shell("(trap '' TERM; sleep 600) & sleep 0.2; exit 0"), 2],
    [
      'a child with an empty environment elsewhere',
      shell('cd /; env -i setsid sleep 600 3>&- & exit 0'),
      1,
    ],
    ['200 descendants in sessions of their own', [fixture('forks-many'), '200'], 200],
  ] as const)('%s', async (_, argv, descendants) => {
    const [program, ...rest] = argv
    const report = await rig.run({ argv: [program, ...rest] })
    expect(report).toMatchObject({ reason: 'exited', exitCode: 0, unkillable: [] })
    // A shell may end between two looks, its child is then met alone.
    expect(report.descendantsKilled).toBeGreaterThanOrEqual(Math.min(descendants, 1))
    if (descendants > 2) expect(report.descendantsKilled).toBe(descendants)
    expect(rig.processes()).toEqual([])
  })
})

describe('how a worker is ended that will not end', () => {
  test('one that ignores signals is killed after the grace', async () => {
    const from = performance.now()
    const report = await rig.run({ argv: [fixture('ignores-term')], timeoutMs: 800 })
    expect(report).toMatchObject({ reason: 'deadline', exitCode: null, signal: 'SIGKILL' })
    expect(performance.now() - from).toBeGreaterThan(800 + LIMITS.termGraceMs)
    expect(rig.processes()).toEqual([])
  })

  test('one that stopped itself is killed', async () => {
    const report = await rig.run({ argv: shell('kill -STOP $$'), timeoutMs: 300 })
    expect(report).toMatchObject({ reason: 'deadline', signal: 'SIGKILL' })
  })

  test('one that cleans up on TERM is given the time', async () => {
    const script = "trap 'echo cleaned > note; exit 9' TERM; touch up; while :; do sleep 0.05; done"
    const report = await rig.run({ argv: shell(script), timeoutMs: 500 })
    expect(report).toMatchObject({ reason: 'deadline', exitCode: 9, signal: null })
    expect(rig.read('note')).toBe('cleaned\n')
  })

  test('TERM comes once to each process', async () => {
    const script = "trap 'echo term >> note' TERM; touch up; while :; do sleep 0.05; done"
    await rig.run({ argv: shell(script), timeoutMs: 500 })
    expect(rig.read('note')).toBe('term\n')
  })
})

test('orphans that end are collected while the worker runs', async () => {
  const request = { ...rig.request, argv: [fixture('makes-zombies'), '200'] as const }
  await rig.executor.launch(request)
  const pid = await waitUntil('the supervisor has started', () => rig.started()?.supervisor.pid)
  await waitUntil('the orphans are made', () => rig.read('made'))
  await waitUntil('only the worker is left', () => childrenOf(pid).length === 1)
  rig.executor.cancel(request)
  expect(await rig.executor.watch(request)).toMatchObject({ report: { descendantsKilled: 0 } })
})

test('where orphans do not come to us, the session of the worker is searched', async () => {
  const bundle = bundleFixture('end-without-subreaper')
  const actors = actorsOf(bundle.path)
  const note = rig.inTree('pids')
  const actor = actors.start([
    `(sleep 600 & echo $! >> ${note}); (trap '' TERM; sleep 600 & echo $! >> ${note})`,
  ])
  expect(JSON.parse(await actor.ended())).toEqual({ descendants: 2, unkillable: [] })
  const pids = (rig.read('pids') ?? '').trim().split('\n').map(Number)
  expect(pids.map(identifyProcess)).toEqual([null, null])
  bundle.remove()
})

describe('what cannot be ended', () => {
  /** A tree whose processes survive everything, and a clock that is as fast as it is looked at. */
  function immortals(pids: readonly number[]): { tree: ProcessTree; signals: string[] } {
    const signals: string[] = []
    const tree: ProcessTree = {
      living: () => pids.map((pid) => ({ pid, startTicks: 1, bootId: 'b', session: pid })),
      signal: ({ pid }, signal) => signals.push(`${signal} ${pid}`),
      killGroup: () => {},
      reap: () => {},
      isEmpty: () => pids.length === 0,
    }
    return { tree, signals }
  }

  test('is reported after the bound, the worker included', async () => {
    let now = 0
    const clock = {
      now: () => (now += 1),
      sleep: (ms: number) => {
        now += ms
        return Promise.resolve()
      },
    }
    const { tree, signals } = immortals([10, 11])
    const ended = await endProcesses({ clock, tree, workerPid: 10 })
    expect(ended).toEqual({ descendants: 1, unkillable: [10, 11] })
    expect(now).toBeGreaterThan(LIMITS.termGraceMs + LIMITS.killBoundMs)
    expect(signals.slice(0, 4)).toEqual(['SIGTERM 10', 'SIGTERM 11', 'SIGKILL 10', 'SIGKILL 11'])
  })
})
