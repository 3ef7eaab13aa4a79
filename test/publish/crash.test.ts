import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import type { PublishPlan } from '../../daemon/core/journal.ts'
import { fromTimestamp } from '../../daemon/core/timestamp.ts'
import type { PublishPorts } from '../../daemon/publish/run-stages.ts'
import { publicationOf, RUN, SETTLE_MS } from './publish-scene.ts'
import { makeWorld, publish, type World, type WriteName } from './publish-world.ts'

// Design §1.7: one branch, one PR, one comment, one label change, one close per run, whatever dies when. Every
// call of a port is a place to die: before it, after it, and, for a write, with the request on its way.

class SimulatedCrash extends Error {}

/** before: not done. after: done, and nobody heard of it. late: sent, and it takes effect after the death. */
type Crash = Readonly<{ at: number; when: 'before' | 'after' | 'late' }>

const WRITES: Readonly<Record<string, WriteName>> = {
  pushNewBranch: 'push',
  createPullRequest: 'createPull',
  createComment: 'createComment',
  removeLabel: 'removeLabel',
  closeIssue: 'close',
}
const EFFECTS: Readonly<Record<PublishPlan, readonly WriteName[]>> = {
  code: ['push', 'createPull', 'createComment', 'removeLabel', 'close'],
  findings: ['createComment', 'removeLabel', 'close'],
  'no-changes': ['createComment'],
  notice: ['createComment'],
}
const PLANS = Object.keys(EFFECTS) as readonly PublishPlan[]

/** The ports of a process that dies at its n-th call, and how many calls it has made. */
function mortal(world: World, crash: Crash | null): { ports: PublishPorts; calls: () => number } {
  let calls = 0
  const observe = ({ method, when }: Effect): void => {
    if (when === 'before') calls += 1
    if (crash === null || calls !== crash.at) return
    const write = WRITES[method]
    if (crash.when === 'late' && when === 'before' && write !== undefined) world.fail(write, 'late')
    const dies =
      crash.when === 'late' ? write !== undefined && when !== 'before' : when === crash.when
    if (dies) throw new SimulatedCrash()
  }
  const { git, github, journals } = world.ports
  const ports: PublishPorts = {
    ...world.ports,
    git: countEffects('git', git, observe),
    github: countEffects('github', github, observe),
    journals: countEffects('journals', journals, observe),
  }
  return { ports, calls: () => calls }
}

/** One process after another, each dying as told, until the run is published. Returns the calls of the first. */
async function publishThroughCrashes(
  world: World,
  plan: PublishPlan,
  crashes: readonly Crash[],
): Promise<number> {
  let first: number | null = null
  for (let process = 0; process < crashes.length + 40; process += 1) {
    const { ports, calls } = mortal(world, crashes[process] ?? null)
    try {
      const tried = await publish(world, {}, { plan, ports })
      if (tried.kind === 'published') return first ?? calls()
      // Alive, but it has to wait, as a runner that leaves and is started again.
      const until = tried.fault.details['until']
      const waits = typeof until === 'string' ? fromTimestamp(until) - world.now() : 10_000
      world.advance(Math.min(waits, 60_000))
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    first ??= calls()
  }
  throw new RangeError('it never ended')
}

/** What must hold at the end, whatever happened on the way. */
async function expectOnce(world: World, plan: PublishPlan, crashes: readonly Crash[]) {
  world.advance(SETTLE_MS * 10) // everything still on its way arrives
  const journal = world.ports.journals.read(RUN)
  await world.ports.git.remoteBranch('', '')
  const { issue, branches, pulls, comments, timeline } = world
  const count = (list: Readonly<{ length: number }>, name: WriteName): boolean =>
    list.length === (EFFECTS[plan].includes(name) ? 1 : 0)
  const told = { crashes, done: [...world.done].sort() }
  expect(told).toEqual({ crashes, done: [...EFFECTS[plan]].sort() })
  expect([
    count([...branches], 'push'),
    count(pulls, 'createPull'),
    count(comments, 'createComment'),
    timeline.length,
  ]).toEqual([true, true, true, EFFECTS[plan].includes('close') ? 2 : 0])
  expect(issue).toEqual(
    EFFECTS[plan].includes('close')
      ? { labels: ['bug'], isOpen: false }
      : { labels: ['bug', expect.any(String)], isOpen: true },
  )
  expect(journal).toMatchObject({ intent: null, publication: publicationOf(plan) })
  const markers = Object.keys(journal?.markers ?? {})
  expect(markers).toHaveLength(EFFECTS[plan].length + (plan === 'code' ? 1 : 0))
}

describe.each(PLANS)('the plan %s', (plan) => {
  test.each([
    { lagMs: 0, lateMs: 25_000 },
    { lagMs: 15_000, lateMs: 10_000 },
    { lagMs: 90_000, lateMs: 29_000 },
  ])('dies once, at every call and in every way: %j', async (slowness) => {
    const calls = await publishThroughCrashes(makeWorld(slowness), plan, [])
    expect(calls).toBeGreaterThan(EFFECTS[plan].length * 4)
    for (let at = 1; at <= calls; at += 1) {
      for (const when of ['before', 'after', 'late'] as const) {
        const world = makeWorld(slowness)
        await publishThroughCrashes(world, plan, [{ at, when }])
        await expectOnce(world, plan, [{ at, when }])
      }
    }
  })

  test('every process dies where it likes, several in a row', async () => {
    const crash: fc.Arbitrary<Crash> = fc.record({
      at: fc.integer({ min: 1, max: 12 }),
      when: fc.constantFrom('before', 'after', 'late'),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(crash, { minLength: 2, maxLength: 10 }),
        fc.integer({ min: 0, max: 60_000 }),
        fc.integer({ min: 0, max: 30_000 }),
        async (crashes, lagMs, lateMs) => {
          const world = makeWorld({ lagMs, lateMs })
          await publishThroughCrashes(world, plan, crashes)
          await expectOnce(world, plan, crashes)
        },
      ),
      { numRuns: 300 },
    )
  })
})
