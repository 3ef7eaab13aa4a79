import {
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { classifyEnd } from '../../daemon/core/classify-end.ts'
import type { LaunchRequest } from '../../daemon/core/executor.ts'
import type { ExitReport } from '../../daemon/core/supervision-files.ts'
import { watchSupervisor } from '../../daemon/supervision/watch-supervisor.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { processesWorkingIn } from '../../daemon/sys/find-processes.ts'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { childrenOf, environmentOf, identifyProcess } from '../../daemon/sys/process-identity.ts'
import { type Actor, actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'
import { buildSupervisor, type Rig, reportOf, rogue } from '../support/supervisor-rig.ts'

// The rogues' gallery: each worker does one bad thing (test/fixtures/bin/rogue) under the real supervisor.
// What holds for all of them is said once, in `expectNoTrace`.

const NOBODY = 65534
const MIB = 1024 * 1024

const supervisor = buildSupervisor()
const launcher = bundleFixture('daemon-actor')
const runners = actorsOf(launcher.path)
let rig: Rig

beforeEach(() => {
  rig = supervisor.open()
})
afterEach(async () => {
  await runners.endAll()
  try {
    expectNoTrace(rig)
  } finally {
    await rig.close()
  }
})
afterAll(() => {
  supervisor.remove()
  launcher.remove()
})

/** What a run may leave, whatever its worker did: its own files, nobody alive, all locks free. */
function expectNoTrace({ root, request, processes, read }: Rig): void {
  expect(notedPids(read).filter((pid) => identifyProcess(pid) !== null)).toEqual([])
  expect([...processes(), ...processesWorkingIn(request.treePath)]).toEqual([])
  for (const lock of ['sup.lock', 'tree.lock'])
    expect(isLocked(join(request.directory, lock))).toBe(false)
  const ours = ['run', 'tree', 'run.log', 'supervisor.log', 'request.json']
  const files = ['launch.json', 'started.json', 'exit.json', 'control', 'sup.lock', 'tree.lock']
  expect(readdirSync(root).filter((name) => !ours.includes(name))).toEqual([])
  expect(readdirSync(request.directory).filter((name) => !files.includes(name))).toEqual([])
}

/** Pids that processes of the rogue noted of themselves, so that no mark of ours is needed to find them. */
function notedPids(read = rig.read): readonly number[] {
  return (read('pids') ?? '').split('\n').filter(Boolean).map(Number)
}

function stateOf(pid: number): string | undefined {
  return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
}

/** Launches a rogue that has to be ended by somebody, and waits until it has done its deed. */
async function launchUntil(
  argv: LaunchRequest['argv'],
  isDone: () => boolean,
  change: Partial<LaunchRequest> = {},
): Promise<LaunchRequest> {
  const request = { ...rig.request, ...change, argv }
  await rig.executor.launch(request)
  await waitUntil('the rogue has done its deed', isDone)
  await waitUntil('the worker is recorded', () => rig.started()?.worker)
  return request
}

/** Nothing is hidden or closed to root, so the whole run – runner, supervisor and worker – is another user's. */
function launchAsNobody(argv: LaunchRequest['argv']): Actor {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const { root, request } = rig
  const requestPath = join(root, 'request.json')
  writeFileSync(requestPath, JSON.stringify({ ...request, argv }), { mode: 0o644 })
  if (user.uid !== undefined)
    for (const path of [root, request.directory, request.treePath])
      chownSync(path, user.uid, user.gid)
  return runners.start(['launch-run', requestPath, supervisor.path], user)
}

/** A rogue that leaves something behind although it ends well. */
type Leaver = Readonly<{
  attack: string
  does: readonly [string, ...string[]]
  /** How many processes have to be ended; less where they may end by themselves meanwhile. */
  killed?: number
  atLeast?: number
  /** Also run where orphans do not come to us: how many the next tick has to sweep there. */
  reapedElsewhere?: number
}>

const LEAVERS: readonly Leaver[] = [
  { attack: 'a child', does: ['leaves-a-child'], killed: 1, reapedElsewhere: 0 },
  { attack: 'a daemon that forked twice', does: ['forks-twice'], killed: 1, reapedElsewhere: 1 },
  {
    attack: 'a child in another session',
    does: ['starts-a-session'],
    killed: 1,
    reapedElsewhere: 1,
  },
  {
    attack: 'a daemon without parent, session, environment, lock, output and folder of ours',
    does: ['forgets-everything'],
    killed: 1,
  },
  {
    attack: 'nohup in another session',
    does: ['uses-nohup'],
    killed: 1,
    reapedElsewhere: 1,
  },
  {
    attack: 'a stopped child',
    does: ['leaves-a-stopped-child'],
    killed: 1,
    reapedElsewhere: 0,
  },
  {
    attack: 'a child that ignores signals',
    does: ['leaves-a-deaf-child'],
    killed: 1,
    reapedElsewhere: 0,
  },
  {
    attack: 'a daemon that has only the output',
    does: ['holds-output'],
    killed: 1,
    reapedElsewhere: 1,
  },
  {
    attack: 'a daemon that has the tree lock as another descriptor',
    does: ['hides-the-lock'],
    killed: 1,
    reapedElsewhere: 1,
  },
  {
    attack: 'nothing, not even its lock',
    does: ['closes-the-lock'],
    killed: 0,
    reapedElsewhere: 0,
  },
  {
    attack: '200 descendants in sessions of their own',
    does: ['forks-many', '200'],
    killed: 200,
  },
  {
    attack: 'a process that becomes another one thousands of times, faster than one can look',
    does: ['hops', '4000'],
    atLeast: 1,
  },
]

describe('a worker that ends well and leaves', () => {
  test.each(LEAVERS)('$attack: it is ended too', async ({ does, killed, atLeast = killed }) => {
    const report = await rig.run({ argv: rogue(...does) })
    expect(report).toMatchObject({ reason: 'exited', exitCode: 0, unkillable: [] })
    expect(report.descendantsKilled).toBeGreaterThanOrEqual(atLeast ?? 0)
    if (killed !== undefined) expect(report.descendantsKilled).toBe(killed)
  })
})

/** A rogue that does not end by itself; what is done about it begins when `isDone`. */
type Stayer = Readonly<{
  attack: string
  does: readonly [string, ...string[]]
  isDone: () => boolean
  told: Partial<ExitReport>
  isAlsoElsewhere?: true
}>

const hasNoted = (count: number) => (): boolean => notedPids().length === count
const areStopped = (count: number) => (): boolean =>
  hasNoted(count)() && notedPids().every((pid) => stateOf(pid) === 'T')
const isUp = (): boolean => rig.read('up') !== null

const STAYERS: readonly Stayer[] = [
  {
    attack: 'forks without end at the limit of its user',
    does: ['forks-without-end', '150', '250'],
    isDone: () => new Set(rig.processes()).size >= 100,
    told: { signal: 'SIGKILL' },
  },
  {
    attack: 'ignores every signal that can be ignored, with its child',
    does: ['ignores-signals'],
    isDone: hasNoted(2),
    told: { signal: 'SIGKILL', descendantsKilled: 1 },
    isAlsoElsewhere: true,
  },
  {
    attack: 'has stopped itself',
    does: ['stops-itself'],
    isDone: areStopped(1),
    told: { signal: 'SIGKILL', descendantsKilled: 0 },
    isAlsoElsewhere: true,
  },
  {
    attack: 'has stopped its whole group',
    does: ['stops-its-group'],
    isDone: areStopped(2),
    told: { signal: 'SIGKILL', descendantsKilled: 1 },
    isAlsoElsewhere: true,
  },
  {
    attack: 'keeps 500 zombies',
    does: ['makes-zombies', '500'],
    isDone: isUp,
    told: { signal: 'SIGTERM', descendantsKilled: 0 },
  },
  {
    attack: 'has a line of 200 descendants',
    does: ['nests-deep', '200'],
    isDone: isUp,
    told: { signal: 'SIGTERM', descendantsKilled: 200 },
  },
  {
    attack: 'renices itself and its keeper and makes itself the last to be killed',
    does: ['slows-its-keeper'],
    isDone: hasNoted(1),
    told: { signal: 'SIGTERM', descendantsKilled: 0 },
  },
]

describe('a worker that', () => {
  test.each(STAYERS)('$attack: a cancel ends it', async ({ does, isDone, told }) => {
    const request = await launchUntil(rogue(...does), isDone)
    rig.executor.cancel(request)
    const report = reportOf(await rig.executor.watch(request), rig.root)
    expect(report).toMatchObject({ ...told, unkillable: [] })
  })

  test('makes 200 orphans that end at once: they are collected while it runs', async () => {
    const request = await launchUntil(rogue('makes-orphans', '200'), isUp)
    const keeper = rig.started()?.supervisor.pid ?? 0
    await waitUntil('only the worker is left', () => childrenOf(keeper).length === 1)
    rig.executor.cancel(request)
    expect(await rig.executor.watch(request)).toMatchObject({ report: { descendantsKilled: 0 } })
  })

  test('idles after its result: it is ended after the completion grace', async () => {
    const argv = rogue('idles-after-its-result')
    expect(await rig.run({ argv, completionGraceMs: 600 })).toMatchObject({
      reason: 'completion-grace',
      signal: 'SIGTERM',
    })
  })

  test('drips a byte now and then: it has not stalled', async () => {
    const report = await rig.run({ argv: rogue('drips', '25'), stallMs: 1000 })
    expect(report).toMatchObject({ reason: 'exited', exitCode: 4 })
    expect(rig.transcript()).toBe('.'.repeat(25))
  })

  test('closes its input and its output early: it goes on, and its end is seen', async () => {
    const report = await rig.run({ argv: rogue('closes-its-output') })
    expect(report).toMatchObject({ reason: 'exited', exitCode: 4, transcriptBytes: 0 })
    expect(rig.read('note')).toBe('still here 4')
  })

  test('closes its tree to everybody: its end is told', async () => {
    const said = await launchAsNobody(rogue('closes-its-tree')).ended()
    expect(said).toContain('"reason":"exited","detail":null,"exitCode":0')
  })

  test('removes its tree and leaves a child in it: the child is ended, the end is told', async () => {
    const report = await rig.run({ argv: rogue('removes-its-tree') })
    expect(report).toMatchObject({ reason: 'exited', exitCode: 0, descendantsKilled: 1 })
    expect(existsSync(rig.request.treePath)).toBe(false)
  })
})

describe('a worker that prints', () => {
  test('200 MB: the cap holds, all of it is counted, and the supervisor does not grow', async () => {
    const cap = 1_000_000
    const change = { transcriptMaxBytes: cap }
    const request = await launchUntil(rogue('floods', '200'), () => rig.started() !== null, change)
    const keeper = rig.started()?.supervisor.pid ?? 0
    const before = mostMemoryOf(keeper)
    writeFileSync(rig.inTree('go'), '')
    await waitUntil('all is written', () => rig.read('flooded') !== null)
    expect(mostMemoryOf(keeper) - before).toBeLessThan(24 * MIB)
    writeFileSync(rig.inTree('leave'), '')
    const report = reportOf(await rig.executor.watch(request), rig.root)
    const marker = '\n...<truncated 199000000 bytes>\n'
    expect(report).toMatchObject({ exitCode: 0, transcriptBytes: cap + marker.length })
    expect(rig.transcript() === `${'x'.repeat(cap)}${marker}`).toBe(true)
  })

  test('on both streams in turns: the order is kept', async () => {
    await rig.run({ argv: rogue('alternates', '5000') })
    const expected = Array.from({ length: 5000 }, (_, n) => `${n}\n`).join('')
    expect(rig.transcript()).toBe(expected)
  })

  test('every byte, half characters and a marker like ours: they are kept as they are', async () => {
    const report = await rig.run({ argv: rogue('prints-binary') })
    const expected = Buffer.concat([
      Buffer.from(Array.from({ length: 256 }, (_, n) => n)),
      Buffer.from('fffec328eda080f580', 'hex'),
      Buffer.from('\u001b[2J\u001b]0;title\u0007\0\0\n...<truncated 1 bytes>\n', 'latin1'),
      Buffer.from('c3', 'hex'),
    ])
    expect(readFileSync(rig.request.transcriptPath)).toEqual(expected)
    expect(report).toMatchObject({
      transcriptBytes: expected.length,
      transcriptTruncated: false,
    })
  })

  test('until the disk is full: the run ends, the report says why', async () => {
    await rig.close()
    // 8 blocks of 512 bytes: room for the report, not for the output.
    const limited = ['/bin/sh', '-c', 'ulimit -f 8; exec "$@"', 'sh'] as const
    rig = supervisor.open({ argv: [...limited, process.execPath, supervisor.path] })
    expect(await rig.run({ argv: rogue('prints-for-ever') })).toMatchObject({
      reason: 'transcript-failed',
      detail: 'EFBIG',
      transcriptTruncated: true,
    })
  })

  /** The most memory a process has had so far, in bytes (proc(5), VmHWM). */
  function mostMemoryOf(pid: number): number {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(text)?.[1]) * 1024
  }
})

describe('a worker that turns on its keeper and', () => {
  const vanished = { kind: 'vanished', launched: true, workerStarted: true } as const
  const isForgetful = (pid: number): boolean =>
    Object.keys(environmentOf(pid) ?? { unknown: '' }).length === 0

  test('kills it: that is told, and the sweep ends worker and daemon', async () => {
    const request = await launchUntil(rogue('kills-its-keeper'), hasNoted(2))
    expect(await rig.executor.watch(request)).toEqual(vanished)
    expect(notedPids().map(identifyProcess)).not.toContain(null)
    expect(await rig.executor.reap(request)).toEqual({ kind: 'clear', killed: 2 })
  })

  test('kills it, from a folder too deep to be named: what works there is found and ended', async () => {
    const request = await launchUntil(rogue('kills-its-keeper-from-too-deep'), hasNoted(1))
    const [daemon = 0] = notedPids()
    await waitUntil('only its folder is left of it', () => isForgetful(daemon))
    expect(() => readlinkSync(`/proc/${daemon}/cwd`)).toThrow('ENAMETOOLONG')
    writeFileSync(rig.inTree('go'), '')
    expect(await rig.executor.watch(request)).toEqual(vanished)
    expect(await rig.executor.reap(request)).toEqual({ kind: 'clear', killed: 1 })
    expect(identifyProcess(daemon)).toBeNull()
  })

  test('stops it: it is found overdue, killed, and the rest is swept', async () => {
    const request = await launchUntil(rogue('stops-its-keeper'), isUp, { timeoutMs: 1000 })
    const hour = 3_600_000
    const later = { now: () => Date.now() + hour, sleep: () => systemClock.sleep(1) }
    expect(await watchSupervisor(later, request)).toEqual({ kind: 'overdue' })
    expect(await rig.executor.killSupervisor(request)).toBe(true)
    expect(await rig.executor.watch(request)).toEqual(vanished)
    expect(await rig.executor.reap(request)).toEqual({ kind: 'clear', killed: 1 })
  })

  const REFUSED = ['environ', 'mem', 'maps', 'fd/0'].map((file) => `${file}: Permission denied`)
  const nothingOf = (who: string): readonly string[] =>
    [...REFUSED, 'trace: Operation not permitted'].map((line) => `${who} ${line}`)
  // Address 0 of a memory is no page; what counts is that the file could be opened.
  const allOf = (who: string): readonly string[] => [
    `${who} environ: done`,
    `${who} mem: Input/output error`,
    `${who} maps: done`,
    `${who} fd/0: done`,
    `${who} trace: done`,
  ]

  test('looks into it and into the runner as the same user: it can only see its own', async () => {
    const runner = launchAsNobody(rogue('spies-as-the-same-user'))
    await waitUntil('the worker is recorded', () => rig.started()?.worker)
    writeFileSync(rig.inTree('go.part'), String(runner.process.pid), { mode: 0o644 })
    renameSync(rig.inTree('go.part'), rig.inTree('go'))
    expect(await runner.ended()).toContain('"reason":"exited"')
    const seen = [...nothingOf('supervisor'), ...nothingOf('runner'), ...allOf('own')]
    expect(rig.transcript().trimEnd().split('\n')).toEqual(seen)
  })

  test('looks into it as a second user: it can only see its own', async () => {
    expect(await rig.run({ argv: rogue('spies-as-another-user') })).toMatchObject({ exitCode: 0 })
    const seen = [...nothingOf('supervisor'), ...allOf('own')]
    expect(rig.transcript().trimEnd().split('\n')).toEqual(seen)
  })
})

/** Those of signal(7) that end a process and have a name on every Linux. */
const DEADLY = `
  SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE
  SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM SIGXCPU
  SIGXFSZ SIGVTALRM SIGPROF SIGIO SIGPWR SIGSYS`
  .trim()
  .split(/\s+/)

describe('a worker that dies', () => {
  const AT_ONCE = 4

  test('by any signal: the signal is told', async () => {
    const told: Record<string, unknown> = {}
    for (let first = 0; first < DEADLY.length; first += AT_ONCE) {
      const names = DEADLY.slice(first, first + AT_ONCE)
      await Promise.all(
        names.map(async (name) => Object.assign(told, { [name]: await dieBy(name) })),
      )
    }
    const expected = DEADLY.map((signal) => [signal, { reason: 'exited', exitCode: null, signal }])
    expect(told).toEqual(Object.fromEntries(expected))
  })

  test('by a signal without a name, after a result that says success: it is not taken for one', async () => {
    const report = await rig.run({ argv: rogue('succeeds-and-dies-by', 'SIGRTMIN+3') })
    expect(rig.read('worker-result.json')).toContain('success')
    expect(report).toMatchObject({ reason: 'exited', exitCode: null, signal: 'SIGRTMIN+3' })
    const facts = { runId: '', program: '', transcriptPath: '', timeoutMs: 1, stallMs: 0 }
    expect(classifyEnd({ kind: 'ended', report }, facts)).toMatchObject({
      kind: 'failed',
      fault: {
        code: 'worker/interrupted',
        details: { reason: 'the worker received SIGRTMIN+3' },
      },
    })
  })

  test('by the last of them', async () => {
    const report = await rig.run({ argv: rogue('dies-by', 'SIGRTMAX') })
    expect(report).toMatchObject({ exitCode: null, signal: 'SIGRTMIN+30' })
  })

  async function dieBy(name: string): Promise<Partial<ExitReport>> {
    const own = supervisor.open()
    const { reason, exitCode, signal } = await own.run({ argv: rogue('dies-by', name) })
    expectNoTrace(own)
    await own.close()
    return { reason, exitCode, signal }
  }
})

describe('where orphans do not come to the supervisor, a worker that', () => {
  // The row of macOS in every table of platforms: ps(1), no subreaper, no pidfd. What left the worker's
  // session before the end is out of sight there; the tick after it finds it by its marks (executor/sweep-run.ts).
  const preload = new URL('../support/portable-platform.mjs', import.meta.url).href

  beforeEach(async () => {
    await rig.close()
    const environment = { PATH: process.env['PATH'] ?? '', NODE_OPTIONS: `--import=${preload}` }
    rig = supervisor.open({ environment })
  })

  test.each(LEAVERS.filter(({ reapedElsewhere }) => reapedElsewhere !== undefined))(
    'ends well and leaves $attack: it is ended, or swept',
    async ({ does, reapedElsewhere }) => {
      const report = await rig.run({ argv: rogue(...does) })
      expect(report).toMatchObject({ reason: 'exited', exitCode: 0, unkillable: [] })
      const swept = await rig.executor.reap(rig.request)
      expect(swept).toEqual({ kind: 'clear', killed: reapedElsewhere })
    },
  )

  test.each(STAYERS.filter(({ isAlsoElsewhere }) => isAlsoElsewhere))(
    '$attack: a cancel ends it',
    async ({ does, isDone, told }) => {
      const request = await launchUntil(rogue(...does), isDone)
      rig.executor.cancel(request)
      const report = reportOf(await rig.executor.watch(request), rig.root)
      expect(report).toMatchObject({ ...told, unkillable: [] })
    },
  )

  test('prints on both streams in turns: the order is kept', async () => {
    await rig.run({ argv: rogue('alternates', '500') })
    expect(rig.transcript()).toBe(Array.from({ length: 500 }, (_, n) => `${n}\n`).join(''))
  })
})
