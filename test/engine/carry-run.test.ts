import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import { FAULTS, type FaultCode } from '../../daemon/core/fault-catalogue.ts'
import { FAULT_CLASSES, type FaultClass } from '../../daemon/core/fault-classes.ts'
import type { RunStage } from '../../daemon/core/journal.ts'
import { backoffMs } from '../../daemon/core/scheduling.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { RUN, START } from '../publish/publish-world.ts'
import { KEY, RETRY, SELF } from './engine-scene.ts'
import { type RunScene, useRun } from './run-scene.ts'

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
    expect(await outcome('owned', fault(sampleOf(faultClass)))).toEqual(TABLE[faultClass])
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
      expect(await outcome(stage, fault(sampleOf(faultClass)))).toEqual(TABLE[faultClass])
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
    await outcome('publishing', fault('github/rate-limited', { kind: 'primary', until }))
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
    BREAK.publishing(run(), fault('github/rate-limited', { kind: 'primary', until: 'x' }))
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
