import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import { fault } from '../../daemon/core/fault.ts'
import { type Journal, RUN_STAGES, type RunStage } from '../../daemon/core/journal.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { Phase } from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { advanceRun, type RunEnd } from '../../daemon/engine/advance-run.ts'
import { recover } from '../../daemon/engine/recover.ts'
import type { RunPorts } from '../../daemon/engine/run-ports.ts'
import { JOURNAL, RUN, START } from '../publish/publish-world.ts'
import { sampleFault } from '../support/faults.ts'
import type { Crash } from '../support/model-process.ts'
import { makeModelWorld, REPOSITORIES, type Setup, TRIGGERS } from '../support/model-world.ts'
import { entryOf, KEY, makeScene, running, SELF, useScene } from './engine-scene.ts'
import { makeRun, type RunScene } from './run-scene.ts'

const scene = useScene()
const STAGES = Object.keys(RUN_STAGES) as readonly RunStage[]
const OTHER_RUN = RUN.replace('1', '2')
const NOTHING = { adopted: [], problems: [] }
const OUTCOME = { on: 'published', at: toTimestamp(START), runId: RUN } as const

const claimFiles = (): readonly string[] => readdirSync(scene().layout.directories.claims)
const stored = (): Journal | null => scene().ports.journals.read(RUN)
/** What became of it, in short. */
const summary = async (): Promise<object> => {
  const { adopted, problems } = await recover(scene().ports)
  return {
    adopted: adopted.length,
    problems: problems.length,
    phase: scene().entry(7)?.phase,
    isHeld: scene().claims.isHeld(KEY),
    files: claimFiles().length,
  }
}
const ADOPTED = { adopted: 1, problems: 0, phase: 'in_progress', isHeld: true, files: 1 }
const REQUEUED = { adopted: 0, problems: 0, phase: 'queued', isHeld: false, files: 0 }

describe('a held claim is a living run', () => {
  test.each(STAGES)('%s: nothing is done', async (stage) => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage, runner: SELF }, true)
    scene().crossed.length = 0
    expect(await recover(scene().ports)).toEqual(NOTHING)
    expect([scene().entry(7)?.phase, scene().ended, scene().started]).toEqual([
      'in_progress',
      [],
      [],
    ])
    expect(scene().crossed).not.toContain('journals.write')
  })
})

describe('a free claim is a run without a runner', () => {
  test.each<[RunStage, object]>([
    ['starting', REQUEUED],
    ['owned', ADOPTED],
    ['launching', ADOPTED],
    ['finished', ADOPTED],
    ['publishing', ADOPTED],
    ['ended', ADOPTED],
    ['settled', REQUEUED],
  ])('%s', async (stage, wanted) => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage, outcome: stage === 'ended' ? OUTCOME : null }, false)
    expect(await summary()).toEqual(wanted)
  })

  test('before any other acts, what the dead runner left is ended, and the epoch goes up', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'publishing', runner: { ...SELF, pid: 4711 }, epoch: 3 }, false)
    scene().crossed.length = 0
    await recover(scene().ports)
    const acts = scene().crossed.filter((name) => /write|runners/.test(name))
    expect(acts).toEqual([
      'runners.prepareStart',
      'runners.endOrphans',
      'journals.write',
      'runners.startRunner',
    ])
    expect([scene().ended, stored()?.epoch, stored()?.runner]).toEqual([[4711], 4, null])
  })

  test('without a journal nothing was begun, with or without a claim file', async () => {
    await scene().put(entryOf(7, running()), entryOf(8, running(OTHER_RUN)))
    scene()
      .ports.claims.take({ ...KEY, number: 8 }, OTHER_RUN)
      ?.close()
    expect(await recover(scene().ports)).toEqual(NOTHING)
    expect([7, 8].map((number) => scene().entry(number)?.phase)).toEqual(['queued', 'queued'])
    expect(claimFiles()).toEqual([])
  })
})

describe('a run that waits', () => {
  test.each([
    ['a moment more', 1, 0],
    ['no longer', 0, 1],
    ['for the longest there is', LIMITS.rateLimitCapMs, 0],
    ['longer than there is, so the clock was set back', LIMITS.rateLimitCapMs + 1, 1],
  ])('%s', async (_, ms, adopted) => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'publishing', notBefore: toTimestamp(START + ms) }, false)
    expect((await recover(scene().ports)).adopted).toHaveLength(adopted)
    expect(scene().entry(7)?.phase).toBe('in_progress')
  })
})

describe('a run that the queue has left behind', () => {
  test.each<[RunStage, Phase, object]>([
    ['owned', 'queued', REQUEUED],
    ['publishing', 'needs_attention', { ...REQUEUED, phase: 'needs_attention' }],
    ['settled', 'done', { ...REQUEUED, phase: 'done' }],
    // Its outcome may not have been told: it is told again, which changes nothing.
    ['ended', 'queued', { ...ADOPTED, phase: 'queued' }],
  ])('%s, and the entry is %s', async (stage, phase, wanted) => {
    await scene().put(entryOf(7, { phase }))
    scene().leave({ stage }, false)
    expect(await summary()).toEqual(wanted)
  })

  test('a settled run whose entry is gone loses only its claim file', async () => {
    scene().leave({ stage: 'settled' }, false)
    expect(await summary()).toEqual({ ...REQUEUED, phase: undefined })
  })
})

describe('trouble with one run', () => {
  test('an unreadable journal is a case for a human, is left as it is, and stops no other', async () => {
    await scene().put(entryOf(7, running()), entryOf(8, running(OTHER_RUN)))
    scene().leave({ stage: 'publishing' }, false)
    writeFileSync(scene().layout.run(RUN).journal, '{')
    scene().leave({ stage: 'owned', runId: OTHER_RUN, key: { ...KEY, number: 8 } }, false)
    const { adopted, problems } = await recover(scene().ports)
    expect([adopted, problems]).toEqual([[OTHER_RUN], []])
    expect(scene().entry(7)).toMatchObject({
      phase: 'needs_attention',
      lastError: { code: 'state/corrupt' },
    })
    expect(readFileSync(scene().layout.run(RUN).journal, 'utf8')).toBe('{')
    expect(scene().claims.isHeld(KEY)).toBe(false)
  })

  test.each([
    'runners.prepareStart',
    'runners.endOrphans',
    'journals.write',
    'runners.startRunner',
  ])('a failure of %s frees the claim, and the next tick adopts it', async (step) => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'finished', runner: SELF }, false)
    scene().fail(`${step} before`, () => fault('sys/spawn-failed', { program: 'p', reason: 'r' }))
    expect(await summary()).toEqual({ ...ADOPTED, adopted: 0, problems: 1, isHeld: false })
    scene().mend()
    expect(await summary()).toEqual(ADOPTED)
    expect(stored()).toMatchObject({ stage: 'finished', runner: null })
  })

  test('after the deadline nothing more is looked at', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'owned' }, false)
    scene().advance(100_000)
    expect(await recover(scene().ports)).toEqual(NOTHING)
  })
})

describe('a run that did not get off the ground', () => {
  test('a runner that said something before it died is trouble that backs off', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'starting' }, false)
    writeFileSync(scene().layout.run(RUN).runnerOutput, 'prompt-v1.md is missing\n')
    expect(await summary()).toEqual(REQUEUED)
    expect(scene().entry(7)).toMatchObject({
      degraded: { count: 1 },
      lastError: { code: 'run/runner-failed' },
    })
    expect(scene().entry(7)?.nextAttemptAt).not.toBeNull()
  })

  test.each<[string, RunStage | null, number]>([
    ['the first in a row', null, 0],
    ['after a run that came further', 'settled', 0],
    ['after one that died the same way', 'starting', 1],
  ])('a runner that dies without a word: %s', async (_, stage, count) => {
    await scene().put(entryOf(7, running()))
    if (stage !== null) scene().ports.journals.write({ ...JOURNAL, runId: OTHER_RUN, stage })
    scene().leave({ stage: 'starting', previousRunId: OTHER_RUN }, false)
    writeFileSync(scene().layout.run(RUN).runnerOutput, '')
    expect(await summary()).toEqual(REQUEUED)
    expect(scene().entry(7)?.degraded?.count ?? 0).toBe(count)
    expect(scene().entry(7)?.nextAttemptAt === null).toBe(count === 0)
  })

  test('what was before it may be unreadable: that holds nothing', async () => {
    await scene().put(entryOf(7, running()))
    scene().ports.journals.write({ ...JOURNAL, runId: OTHER_RUN })
    const { journal } = scene().layout.run(OTHER_RUN)
    writeFileSync(journal, readFileSync(journal, 'utf8').replace(/"version": ?\d+/, '"version":99'))
    expect(() => scene().ports.journals.read(OTHER_RUN)).toThrow('has format 99')
    scene().leave({ stage: 'starting', previousRunId: OTHER_RUN }, false)
    expect(await summary()).toEqual(REQUEUED)
  })

  test('a journal that cannot be read just now is not given up', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'publishing' }, false)
    scene().fail('journals.read before', () =>
      sampleFault('sys/io', { operation: 'Reading', path: 'p' }),
    )
    expect((await recover(scene().ports)).problems).toMatchObject([{ thrown: { code: 'sys/io' } }])
    expect([scene().entry(7)?.phase, scene().cancelled]).toEqual(['in_progress', []])
    scene().mend()
    expect(await summary()).toEqual(ADOPTED)
  })

  test('a runner that cannot be started counts as no adoption', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'launching' }, false)
    scene().fail('runners.startRunner before', () =>
      sampleFault('sys/spawn-failed', { program: 'p' }),
    )
    for (const _ of [1, 2, 3, 4, 5, 6]) await recover(scene().ports)
    expect([stored()?.adoptions, scene().entry(7)?.phase]).toEqual([0, 'in_progress'])
    scene().mend()
    expect(await summary()).toEqual(ADOPTED)
  })
})

describe('a claim that is held too long', () => {
  const overdue = { runner: SELF, ownedUntil: toTimestamp(START) }

  test.each(STAGES)(
    '%s: its owner is ended, and the run goes on as after a death',
    async (stage) => {
      const isAdopted = stage !== 'starting' && stage !== 'settled'
      await scene().put(entryOf(7, running()))
      scene().leave({ ...overdue, stage }, true)
      expect(await recover(scene().ports)).toEqual(NOTHING)
      scene().advance(1)
      expect(await summary()).toEqual(isAdopted ? ADOPTED : REQUEUED)
      expect(scene().ended[0]).toBe(SELF.pid)
    },
  )

  test('an owner that cannot be ended is told of, and nobody else acts', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ ...overdue, stage: 'publishing' }, true)
    scene().advance(1)
    const ports = { ...scene().ports, endOwner: async () => false }
    const { adopted, problems } = await recover(ports)
    expect(adopted).toEqual([])
    expect(problems).toMatchObject([{ thrown: { code: 'sys/unkillable' } }])
    expect(scene().entry(7)?.phase).toBe('in_progress')
  })

  test('of a runner that was stopped before its first word only the claim tells', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'starting', ownedUntil: toTimestamp(START) }, true)
    scene().advance(1)
    expect(await summary()).toEqual(REQUEUED)
  })
})

describe('a run that is taken over', () => {
  test('again and again without coming further ends with a human, its worker stopped, its work kept', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'launching' }, false)
    for (let adoption = 1; adoption <= LIMITS.adoptions; adoption += 1) {
      expect(await summary()).toEqual(ADOPTED)
      scene().die(RUN)
    }
    expect(await summary()).toEqual({ ...REQUEUED, phase: 'needs_attention' })
    expect(scene().entry(7)?.lastError?.code).toBe('run/no-progress')
    expect(stored()).toMatchObject({ stage: 'settled', endedIn: 'launching' })
    expect(scene().cancelled).toEqual([RUN])
    expect(await recover(scene().ports)).toEqual(NOTHING)
  })

  test('its outcome, once decided, is told even when no runner lives long enough to', async () => {
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'ended', outcome: OUTCOME, adoptions: LIMITS.adoptions }, false)
    expect(await summary()).toEqual({ ...REQUEUED, phase: 'awaiting_review' })
  })

  test('a write its dead runner had begun is over then: the settle time counts from there', async () => {
    const intent = {
      stage: 'pushed',
      attempt: 1,
      serverTime: toTimestamp(START),
      deadlineAt: toTimestamp(START + 300_000),
      bootId: 'boot',
      answered: null,
    } as const
    await scene().put(entryOf(7, running()))
    scene().leave({ stage: 'publishing', runner: SELF, intent }, false)
    scene().advance(10_000)
    await recover(scene().ports)
    expect(stored()?.intent).toEqual({ ...intent, deadlineAt: toTimestamp(START + 10_000) })
  })
})

const EFFECTS = 'push,createPull,createComment,removeLabel,close'

class SimulatedCrash extends Error {}

/** Every effect of a run, its journal in memory; dies before or after the n-th call. */
function mortal(one: RunScene, at: number, when: 'before' | 'after') {
  let calls = 0
  let isDead = false
  const observe = (effect: Effect): void => {
    if (effect.when === 'before') calls += 1
    const dies = !isDead && calls === at && effect.when === when
    isDead ||= dies
    // The dead begin nothing any more; what had begun ends unseen.
    if (dies || (isDead && effect.when === 'before')) throw new SimulatedCrash()
  }
  const { github, git, executor, store, claim } = one.ports()
  const ports: RunPorts = one.ports({
    journals: countEffects('journals', one.world.ports.journals, observe),
    github: countEffects('github', github, observe),
    git: countEffects('git', git, observe),
    executor: countEffects('executor', executor, observe),
    store: countEffects('store', store, observe),
    claim: countEffects('claim', { ...claim }, ({ method, ...rest }) => {
      if (method !== 'isCurrent') observe({ method, ...rest })
    }),
  })
  return { ports, calls: () => calls }
}

/** Runners one after the other; the first dies at a call. Returns how many calls it made. */
async function carryThroughCrash(one: RunScene, at: number, when: 'before' | 'after') {
  await one.scene.put(entryOf(7, running()))
  mkdirSync(one.paths.directory, { recursive: true })
  const { journals } = one.world.ports
  journals.write(one.journalAt('starting'))
  let first: number | null = null
  for (let runner = 0; runner < 60; runner += 1) {
    const { ports, calls } = mortal(one, runner === 0 ? at : 0, when)
    let end: RunEnd | null = null
    try {
      end = await advanceRun(ports, journals.read(RUN) ?? one.journalAt('starting'))
    } catch (thrown) {
      // A runner that cannot even write its journal dies of it.
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    first ??= calls()
    if (end?.kind === 'settled') return first
    one.die()
    one.advance(60_000)
  }
  throw new RangeError('it never ended')
}

describe('a runner that dies', () => {
  test('at any call, before it or after it: paid once and published once, or nothing at all', async () => {
    const ends = new Set<string>()
    const endOf = async (at: number, when: 'before' | 'after'): Promise<number> => {
      const scene = makeScene()
      try {
        const dying = makeRun(scene)
        const calls = await carryThroughCrash(dying, at, when)
        const { phase, attempts } = dying.entry() ?? {}
        const { launches } = dying.worker
        ends.add(JSON.stringify({ phase, attempts, launches, done: dying.world.done.join() }))
        expect({ at, when, isHeld: dying.isHeld() }).toEqual({ at, when, isHeld: false })
        return calls
      } finally {
        scene.remove()
      }
    }
    const all = await endOf(0, 'before')
    expect(all).toBeGreaterThan(45)
    for (let at = 1; at <= all; at += 1) {
      await endOf(at, 'before')
      await endOf(at, 'after')
    }
    const whole = { phase: 'awaiting_review', attempts: 0, launches: 1, done: EFFECTS }
    const nothing = { phase: 'queued', attempts: 0, launches: 0, done: '' }
    expect([...ends].sort()).toEqual([whole, nothing].map((end) => JSON.stringify(end)).sort())
  })
})

/** One issue in a model of the whole world, whose clocks and lists are in order. */
const SETUP: Setup = {
  seed: 1,
  lagMs: { poll: 0, issue: 0, comments: 0, timeline: 0, pulls: 0, branch: 0 },
  maxAttempts: 3,
  parallelism: 1,
  perRepository: 1,
  closeIssue: 'finalize',
  removeLabel: true,
  existingPull: 'skip',
  archivesTrees: false,
  workers: ['change'],
}
const ROUND_MS = 1_200_000
const MAX_ROUNDS = 8

const LIVES = {
  code: {
    label: TRIGGERS.code,
    end: { phase: 'awaiting_review', done: 'push,pull,comment,unlabel,close' },
  },
  investigation: {
    label: TRIGGERS.investigation,
    end: { phase: 'done', done: 'comment,unlabel,close' },
  },
  'dry run': { label: TRIGGERS.code, end: { phase: 'previewed', done: '' } },
} as const

/** Who dies: a tick or a runner of a round; the runner works until its worker does, and after that. */
const VICTIMS = {
  'the tick that starts it': { round: 0, kind: 'tick', earlier: null },
  'the runner until its worker works': { round: 0, kind: 'runner', earlier: null },
  'the runner after that': { round: 1, kind: 'runner', earlier: null },
  'the tick that takes it over': { round: 2, kind: 'tick', earlier: 5 },
  'the runner that takes it over': { round: 2, kind: 'runner', earlier: 5 },
} as const

type Victim = (typeof VICTIMS)[keyof typeof VICTIMS]

/** Rounds of a tick and all runners, each later than any wait, with the deaths that were ordered. */
async function liveWith(life: keyof typeof LIVES, victim: Victim, crash: Crash) {
  const world = makeModelWorld(SETUP)
  try {
    const workers: string[] = []
    world.watchers.onWorker = (runId) => void workers.push(runId)
    world.options.dryRun = life === 'dry run'
    const [repository] = REPOSITORIES
    if (repository === undefined) throw new RangeError('there is no repository')
    world.github.human.label(world.github.human.add(repository), LIVES[life].label)
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const isTurn = round === victim.round
      await world.tick(false, Infinity, isTurn && victim.kind === 'tick' ? crash : null)
      const earlier: Crash | null =
        victim.earlier === null || round !== 1
          ? null
          : { at: victim.earlier, of: 'call', when: 'after' }
      await world.goAll(isTurn && victim.kind === 'runner' ? crash : earlier)
      world.pass(ROUND_MS)
    }
    const [entry] = Object.values(world.store.readQueue().entries)
    return {
      died: world.counts.crashes - (victim.earlier === null ? 0 : 1),
      end: {
        phase: entry?.phase,
        done: world.github.done.map(({ name }) => name).join(),
      },
      rest: {
        attempts: entry?.attempts,
        workers: workers.length,
        claims: world.locks.list(),
        living: world.living(),
        violations: world.violations,
      },
    }
  } finally {
    world.remove()
  }
}

describe('a whole life', () => {
  const lives = Object.keys(LIVES) as (keyof typeof LIVES)[]
  const victims = Object.keys(VICTIMS) as (keyof typeof VICTIMS)[]
  const REST = { attempts: 0, workers: 1, claims: [], living: [], violations: [] }

  test.each(lives.flatMap((life) => victims.map((victim) => [life, victim] as const)))(
    '%s: %s dies at any call, before it or after it, and it ends as if nobody had',
    async (life, victim) => {
      let deaths = 0
      for (let isOver = false; !isOver; deaths += isOver ? 0 : 1) {
        for (const when of ['before', 'after'] as const) {
          const crash = { at: deaths + 1, of: 'call', when } as const
          const { died, end, rest } = await liveWith(life, VICTIMS[victim], crash)
          expect({ end, rest, crash }).toEqual({ end: LIVES[life].end, rest: REST, crash })
          // There is no such call any more. (Of calls at the same time not each end can be hit.)
          if (when === 'before') isOver = died === 0
        }
      }
      expect(deaths).toBeGreaterThan(9)
    },
  )
})
