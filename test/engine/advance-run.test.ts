import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { backoffMs } from '../../daemon/core/backoff.ts'
import { fault } from '../../daemon/core/fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import { FAULT_CLASSES, type FaultClass } from '../../daemon/core/fault-classes.ts'
import type { RunStage } from '../../daemon/core/journal.ts'
import { type ExitReport, formatRunFile } from '../../daemon/core/supervision-files.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { reapRun } from '../../daemon/supervision/reap-run.ts'
import { watchSupervisor } from '../../daemon/supervision/watch-supervisor.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'
import { RUN, START } from '../publish/publish-world.ts'
import { sampleFault } from '../support/faults.ts'
import { KEY, RETRY, SELF } from './engine-scene.ts'
import { exited, type RunScene, useRun } from './run-scene.ts'

const run = useRun()
const HOUR = 3_600_000
const COMMITTED = { markers: { committed: 'c'.repeat(40) } }
const troubledSince = (ms: number) => ({ count: 9, since: toTimestamp(ms) })

/** The first port call of each stage; what it throws is met there. */
const BREAK: Readonly<
  Record<'owned' | 'finished' | 'publishing' | 'ended', (one: RunScene, thrown: unknown) => void>
> = {
  owned: ({ git }, thrown) => (git.fetchBase = () => Promise.reject(thrown)),
  finished: ({ git }, thrown) => (git.captureTree = () => Promise.reject(thrown)),
  publishing: ({ git }, thrown) => (git.remoteBranch = () => Promise.reject(thrown)),
  ended: ({ git }, thrown) => (git.removeTree = () => Promise.reject(thrown)),
}
const sampleOf = (faultClass: FaultClass): FaultCode => {
  const codes = Object.keys(FAULTS) as readonly FaultCode[]
  const found = codes.find(
    (code) =>
      FAULTS[code].class === faultClass &&
      !code.startsWith('sys/') &&
      code !== 'state/claim-mismatch',
  )
  return found ?? 'sys/process-aborted'
}
const CLASSES = Object.keys(FAULT_CLASSES) as readonly FaultClass[]
const OUTCOME = { on: 'withdrawn', at: toTimestamp(START), runId: RUN } as const

/** What is left of the run and of its entry. */
async function outcome(stage: keyof typeof BREAK, thrown: unknown): Promise<object> {
  await run().at(stage)
  BREAK[stage](run(), thrown)
  const { kind } = await run().carry()
  const { phase, attempts } = run().entry() ?? {}
  return { kind, stage: run().stored()?.stage, phase, attempts, isHeld: run().isHeld() }
}
const settled = (phase: string, attempts = 0) => ({
  kind: 'settled',
  stage: 'settled',
  phase,
  attempts,
  isHeld: false,
})

describe('a fault before anything is paid ends the run', () => {
  // biome-ignore format: a table is read by its rows
  const TABLE: Readonly<Record<FaultClass, object>> = {
    worker: settled('queued', 1),
    infrastructure: settled('queued'),
    'rate-limited': settled('queued'),
    interrupted: settled('queued'),
    cancelled: settled('skipped'),
    terminal: settled('needs_attention'),
    config: settled('queued'),
    state: settled('queued'),
    usage: settled('queued'),
    internal: settled('queued'),
  }
  test.each(CLASSES)('%s', async (faultClass) => {
    expect(await outcome('owned', sampleFault(sampleOf(faultClass)))).toEqual(TABLE[faultClass])
  })
})

describe.each(['finished', 'publishing'] as const)(
  'a fault when the worker has succeeded (%s)',
  (stage) => {
    const waiting = { kind: 'waiting', stage, phase: 'in_progress', attempts: 0, isHeld: true }
    // biome-ignore format: a table is read by its rows
    const TABLE: Readonly<Record<FaultClass, object>> = {
    worker: settled('queued', 1),
    infrastructure: waiting,
    'rate-limited': waiting,
    // Never for a new attempt: what was paid for would be lost.
    interrupted: settled('needs_attention'),
    usage: settled('needs_attention'),
    cancelled: settled('skipped'),
    terminal: settled('needs_attention'),
    config: waiting,
    state: waiting,
    internal: waiting,
  }
    test.each(CLASSES)('%s', async (faultClass) => {
      expect(await outcome(stage, sampleFault(sampleOf(faultClass)))).toEqual(TABLE[faultClass])
    })

    test('something that is no fault waits like one of our own', async () => {
      expect(await outcome(stage, new TypeError('x'))).toEqual(waiting)
    })
  },
)

const UNREACHABLE = fault('github/unreachable', { request: 'r', reason: 'x' })
const waits = async (): Promise<number | null> => {
  const { notBefore } = run().stored() ?? {}
  return notBefore === null || notBefore === undefined
    ? null
    : Date.parse(notBefore) - run().scene.now()
}

describe('waiting', () => {
  test('longer each time, jittered, until a stage succeeds', async () => {
    await run().at('publishing')
    run().jitter.value = 0.5
    BREAK.publishing(run(), UNREACHABLE)
    for (const count of [1, 2, 3]) {
      await run().carry()
      expect(await waits()).toBe(backoffMs(RETRY.backoffSeconds, count, 0.5))
      expect(run().stored()?.trouble).toEqual({ count, since: toTimestamp(START) })
      run().advance(1000)
    }
    run().git.remoteBranch = async () => null
    run().github.pullRequestsByHead = () => Promise.reject(UNREACHABLE)
    await run().carry()
    expect(run().stored()?.trouble).toMatchObject({ count: 1 })
    expect(run().stored()?.markers).toHaveProperty('pushed')
  })

  test('until the time the fault names', async () => {
    const until = toTimestamp(START + 1_234_000)
    await outcome(
      'publishing',
      fault('github/rate-limited', { kind: 'primary', until, untilMs: Date.parse(until) }),
    )
    expect(run().stored()?.notBefore).toBe(until)
  })

  test('trouble for too long needs a human, and keeps tree and commit', async () => {
    await run().at('publishing', { ...COMMITTED, trouble: troubledSince(START - HOUR) })
    BREAK.publishing(run(), UNREACHABLE)
    expect((await run().carry()).kind).toBe('waiting')
    run().advance(1)
    expect((await run().carry()).kind).toBe('settled')
    expect(run().entry()).toMatchObject({
      phase: 'needs_attention',
      attempts: 0,
      blocked: { source: 'github/unreachable' },
    })
    expect(run().treeExists()).toBe(true)
  })

  test('a limit is no trouble: it waits, however long there was some', async () => {
    await run().at('publishing', { ...COMMITTED, trouble: troubledSince(START - 9 * HOUR) })
    BREAK.publishing(
      run(),
      fault('github/rate-limited', { kind: 'primary', until: 'x', untilMs: START }),
    )
    expect((await run().carry()).kind).toBe('waiting')
  })

  test('a decided outcome is never given up, nor changed', async () => {
    const trouble = troubledSince(START - 9 * HOUR)
    await run().at('ended', { outcome: OUTCOME, trouble })
    const { store } = run().scene.ports
    const busy = fault('state/lock-busy', { path: 'p', seconds: 10 })
    let isBusy = true
    const changeQueue: typeof store.changeQueue = async (change) => {
      if (!isBusy) return store.changeQueue(change)
      isBusy = false
      throw busy
    }
    expect((await run().carry({ store: { ...store, changeQueue } })).kind).toBe('waiting')
    expect(run().stored()).toMatchObject({ stage: 'ended', outcome: { on: 'withdrawn' } })
    expect((await run().carry()).kind).toBe('settled')
    expect(run().entry()?.phase).toBe('skipped')
  })

  test('a tree that cannot be removed keeps no run from its end', async () => {
    await run().at('ended', { outcome: OUTCOME })
    BREAK.ended(run(), fault('sys/io', { operation: 'x', path: 'y', reason: 'z' }))
    expect((await run().carry()).kind).toBe('settled')
    expect([run().entry()?.phase, run().isHeld()]).toEqual(['skipped', false])
  })
})

describe('while a worker may be alive, or has just succeeded', () => {
  const io = fault('sys/io', { operation: 'x', path: 'y', reason: 'z' })
  test.each<[string, (one: RunScene) => void]>([
    ['its files cannot be read', ({ executor }) => (executor.watch = () => Promise.reject(io))],
    [
      'it cannot be killed',
      ({ worker, executor }) => {
        worker.ends.push({ kind: 'overdue' })
        executor.killSupervisor = async () => false
      },
    ],
    [
      'its result cannot be stored', // a folder in its place: no rename can replace that
      ({ paths }) => mkdirSync(`${paths.result}/x`, { recursive: true }),
    ],
  ])('%s: the run stays reserved', async (_, arrange) => {
    await run().at('launching')
    arrange(run())
    expect((await run().carry()).kind).toBe('waiting')
    expect([run().entry()?.phase, run().stored()?.stage]).toEqual(['in_progress', 'launching'])
    expect(run().treeExists()).toBe(true)
  })

  test('and for too long it needs a human, not a second worker', async () => {
    await run().at('launching', { trouble: troubledSince(START - HOUR - 1) })
    run().executor.watch = () => Promise.reject(io)
    await run().carry()
    expect(run().entry()).toMatchObject({ phase: 'needs_attention', blocked: { source: 'sys/io' } })
  })
})

describe('processes that could not be ended when the worker ended', () => {
  // The report is written once and says so for ever; whether they are still there is asked anew each time.
  const ended = (change: Partial<ExitReport> = {}) => exited({ unkillable: [4711], ...change })

  /** The real adapter on the run's own files, over a report that is never written again. */
  function watchFiles(): void {
    const { paths, executor } = run()
    const end = ended()
    const report = end.kind === 'ended' ? end.report : null
    if (report !== null)
      writeFileSync(join(paths.directory, 'exit.json'), formatRunFile('exit', report))
    executor.watch = (of, watching) => watchSupervisor(systemClock, of, watching)
    executor.reap = (of) => reapRun(systemClock, of)
  }

  test('while they live the run stays reserved; afterwards its success is seen', async () => {
    await run().at('launching')
    run().executor.watch = async () => ended()
    run().executor.reap = async () => ({ kind: 'unkillable', pids: [4711] })
    expect((await run().carry()).kind).toBe('waiting')
    expect([run().entry()?.phase, run().stored()?.stage]).toEqual(['in_progress', 'launching'])
    run().executor.reap = async () => ({ kind: 'clear', killed: 0 })
    expect((await run().carry()).kind).toBe('settled')
    expect(run().entry()).toMatchObject({ phase: 'awaiting_review', attempts: 0 })
  })

  test('as long as their supervisor keeps its lock they live', async () => {
    await run().at('launching')
    watchFiles()
    const lock = tryLock(run().paths.supervisorLock)
    expect((await run().carry()).kind).toBe('waiting')
    lock?.close()
    await run().carry()
    expect(run().entry()?.phase).toBe('awaiting_review')
  })

  test.each<[string, Partial<ExitReport>, string, number]>([
    ['another exit code', { exitCode: 3 }, 'queued', 1],
    ['the deadline', { reason: 'deadline' }, 'queued', 1],
    ['a cancel', { reason: 'cancelled' }, 'skipped', 0],
    ['a kill from elsewhere', { exitCode: null, signal: 'SIGKILL' }, 'queued', 0],
    ['an exit nobody saw, with a result', { exitCode: null }, 'awaiting_review', 0],
  ])('once they are gone the rest of the report counts: %s', async (_, change, phase, attempts) => {
    await run().at('launching')
    run().executor.watch = async () => ended(change)
    await run().carry()
    expect(run().executorCalls).toEqual(['reap'])
    expect(run().entry()).toMatchObject({ phase, attempts })
  })

  test.each<[string, ReturnType<typeof exited>]>([
    ['after such a report', ended()],
    ['after a vanished supervisor', { kind: 'vanished', launched: true, workerStarted: true }],
  ])('a tree that cannot be made durable is not believed: %s', async (_, end) => {
    const loop = join(dirname(run().treePath), 'loop')
    symlinkSync(loop, loop)
    await run().at('launching', { treePath: join(loop, 'tree') })
    run().executor.watch = async () => end
    expect((await run().carry()).kind).toBe('waiting')
    const met = run().scene.logged.find(({ event }) => event === 'run met a fault')
    expect(met?.fields['message']).toMatch(/^Syncing /)
  })
})

describe('while a lock of the run is held, no trouble ends it', () => {
  const io = fault('sys/io', { operation: 'x', path: 'y', reason: 'z' })
  const LONG = { trouble: troubledSince(START - 9 * HOUR) }
  const notes = () => run().scene.ports.store.readMeta().diagnostics
  const expectReserved = async (): Promise<void> => {
    expect((await run().carry()).kind).toBe('waiting')
    expect([run().entry()?.phase, run().stored()?.stage]).toEqual(['in_progress', 'launching'])
    expect([run().isHeld(), run().treeExists()]).toEqual([true, true])
  }

  describe.each(['supervisorLock', 'treeLock'] as const)('%s', (name) => {
    test.each<[string, unknown, string]>([
      ['a fault of the system', io, 'needs_attention'],
      ['a fault of our own', new TypeError('x'), 'queued'],
    ])('%s, however long: told, and over with the lock', async (_, thrown, phase) => {
      await run().at('launching', LONG)
      run().executor.watch = () => Promise.reject(thrown)
      const lock = tryLock(run().paths[name])
      await expectReserved()
      await expectReserved()
      expect(notes()).toMatchObject([
        {
          issue: 'Acme/Widgets#7',
          code: expect.any(String),
          message: expect.stringMatching(/^needs attention: ./),
        },
      ])
      lock?.close()
      await run().carry()
      expect(run().entry()?.phase).toBe(phase)
    })
  })

  test('a report that knows of nobody is no proof while the tree is held: it is swept', async () => {
    await run().at('launching')
    run().executor.watch = async () => exited({ reason: 'transcript-failed', detail: 'ENOSPC' })
    run().executor.reap = async () => ({ kind: 'unkillable', pids: [] })
    const lock = tryLock(run().paths.treeLock)
    await expectReserved()
    const met = run().scene.logged.find(({ event }) => event === 'run met a fault')
    expect(met?.fields['code']).toBe('sys/unkillable')
    lock?.close()
    run().executor.reap = async () => ({ kind: 'clear', killed: 0 })
    await run().carry()
    expect(run().entry()).toMatchObject({ lastError: { code: 'worker/transcript-failed' } })
  })

  test('nor while processes without a lock are found', async () => {
    await run().at('launching', LONG)
    run().executor.watch = async () => exited({ unkillable: [4711] })
    run().executor.reap = async () => ({ kind: 'unkillable', pids: [4711] })
    await expectReserved()
    expect(notes()).toMatchObject([
      { code: 'sys/unkillable', message: expect.stringContaining('stays reserved until') },
    ])
  })

  test('of a short trouble nothing is said', async () => {
    await run().at('launching')
    run().executor.watch = () => Promise.reject(new TypeError('x'))
    const lock = tryLock(run().paths.treeLock)
    await expectReserved()
    expect(notes()).toEqual([])
    lock?.close()
  })

  test('an end that was told ends it: nobody waits for a supervisor on its way out', async () => {
    await run().at('launching')
    run().executor.watch = async () => exited({ exitCode: 3 })
    const lock = tryLock(run().paths.supervisorLock)
    expect((await run().carry()).kind).toBe('settled')
    expect(run().entry()).toMatchObject({ phase: 'queued', attempts: 1 })
    lock?.close()
  })
})

describe('leaving and losing', () => {
  test.each<RunStage>(['starting', 'owned', 'launching', 'finished', 'publishing', 'ended'])(
    '%s: a runner that was asked to leave writes nothing and keeps the claim for the next',
    async (stage) => {
      await run().at(stage)
      const before = readFileSync(run().paths.journal, 'utf8')
      run().leaving.abort()
      expect((await run().carry()).kind).toBe('left')
      expect(readFileSync(run().paths.journal, 'utf8')).toBe(before)
      expect([run().world.done, run().executorCalls, run().isHeld()]).toEqual([[], [], true])
    },
  )

  test('asked to leave while the worker runs, it leaves the worker alone', async () => {
    await run().at('launching')
    run().worker.ends.push({ kind: 'unwatched' })
    expect((await run().carry()).kind).toBe('left')
    expect([run().stored()?.stage, run().entry()?.phase]).toEqual(['launching', 'in_progress'])
  })

  test('a run that was taken over is left without a word', async () => {
    await run().at('publishing')
    const ports = run().ports()
    const path = run().scene.layout.claim(KEY)
    const takeOver = (): void => {
      rmSync(path)
      writeFileSync(path, '{}')
    }
    run().git.remoteBranch = async () => {
      takeOver()
      throw UNREACHABLE
    }
    const before = run().stored()
    expect((await run().carry(ports)).kind).toBe('lost')
    expect(run().stored()).toEqual({
      ...before,
      markers: { committed: 'c'.repeat(40) },
      runner: SELF,
      ownedUntil: expect.any(String),
    })
    expect((await run().carry(ports)).kind).toBe('lost')
    expect(run().entry()?.phase).toBe('in_progress')
  })
})
