import { existsSync } from 'node:fs'
import * as fc from 'fast-check'
import { closeCircuits } from '../../daemon/core/circuit-changes.ts'
import { fateOfRun, giveUpRun } from '../../daemon/core/fate-of-run.ts'
import { issueId } from '../../daemon/core/issue-key.ts'
import { QUEUE_VERBS, type QueueVerb, refusalHint } from '../../daemon/core/queue-verbs.ts'
import { makeRunId } from '../../daemon/core/run-id.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { applyToQueue } from '../../daemon/core/transitions.ts'
import { FAULT_KINDS, type FaultKind, type LISTS } from './model-calls.ts'
import type { Crash } from './model-process.ts'
import { isQuiet, newTally, type Rules, type Tally, watchRules } from './model-rules.ts'
import { BEHAVIOURS, type Behaviour } from './model-worker.ts'
import {
  CIRCUITS,
  type ModelWorld,
  makeModelWorld,
  REPOSITORIES,
  type Setup,
  TRIGGERS,
} from './model-world.ts'

// Random histories of the whole engine: what may happen, what must hold after each step whatever happened, and
// what must be true in the end (design §1, §6; P§3).

const ACTS = [
  'label',
  'look',
  'unlabel',
  'relabel',
  'close',
  'reopen',
  'merge',
  'close-pull',
  'push',
  'comment',
  'transfer',
  'delete',
  'own-pull',
] as const

export type Step =
  | Readonly<{ do: 'round'; ms: number; crash: Crash | null }>
  | Readonly<{ do: 'tick'; forced: boolean; calls: number | null; crash: Crash | null }>
  | Readonly<{ do: 'go'; which: number; calls: number | null; crash: Crash | null }>
  | Readonly<{ do: 'kill' | 'leave' | 'unlink'; which: number }>
  /** `issue` beyond those there are: the one last written to. */
  | Readonly<{ do: 'human'; act: (typeof ACTS)[number]; issue: number }>
  | Readonly<{ do: 'fault'; kind: FaultKind; calls: number; writesOnly: boolean }>
  | Readonly<{ do: 'pass' | 'skew'; ms: number }>
  | Readonly<{ do: 'operator'; verb: QueueVerb; entry: number }>
  | Readonly<{ do: 'clone'; repository: number; isThere: boolean }>
  | Readonly<{ do: 'dry-run'; isOn: boolean }>

export type History = Readonly<{
  setup: Setup
  labels: readonly (keyof typeof TRIGGERS | null)[]
  steps: readonly Step[]
}>

const HOUR = 3_600_000
const small = fc.nat({ max: 5 })
const calls = fc.option(fc.integer({ min: 1, max: 25 }), { freq: 2 })
const when = fc.constantFrom<Crash['when']>('before', 'after', 'late')
const crash: fc.Arbitrary<Crash | null> = fc.oneof(
  fc.constant(null),
  fc.record({
    at: fc.oneof(fc.integer({ min: 1, max: 25 }), fc.integer({ min: 20, max: 160 })),
    of: fc.constant('call'),
    when,
  }),
  fc.record({ at: fc.integer({ min: 1, max: 5 }), of: fc.constant('write'), when }),
)
/** From the next look of cron's to a long night. */
const pause = fc.oneof(
  fc.integer({ min: 1000, max: 30_000 }),
  fc.integer({ min: 30_000, max: 300_000 }),
  fc.constant(600_000),
)
const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary })

const step: fc.Arbitrary<Step> = fc.oneof(
  weighted(9, fc.record({ do: fc.constant('round'), ms: pause, crash })),
  weighted(5, fc.record({ do: fc.constant('tick'), forced: fc.boolean(), calls, crash })),
  weighted(9, fc.record({ do: fc.constant('go'), which: small, calls, crash })),
  weighted(1, fc.record({ do: fc.constantFrom('kill', 'leave', 'unlink'), which: small })),
  weighted(
    7,
    fc.record({
      do: fc.constant('human'),
      act: fc.constantFrom(...ACTS),
      issue: fc.nat({ max: 9 }),
    }),
  ),
  weighted(
    3,
    fc.record({
      do: fc.constant('fault'),
      kind: fc.constantFrom(...FAULT_KINDS),
      calls: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 })),
      writesOnly: fc.boolean(),
    }),
  ),
  weighted(
    3,
    fc.record({
      do: fc.constant('pass'),
      ms: fc.oneof(
        fc.integer({ min: 1000, max: 200_000 }),
        fc.integer({ min: 60_000, max: 2 * HOUR }),
        fc.integer({ min: HOUR, max: 48 * HOUR }),
      ),
    }),
  ),
  weighted(
    1,
    fc.record({
      do: fc.constant('skew'),
      ms: fc.oneof(
        fc.integer({ min: -600_000, max: 600_000 }),
        fc.integer({ min: -24 * HOUR, max: 48 * HOUR }),
      ),
    }),
  ),
  weighted(
    1,
    fc.record({
      do: fc.constant('operator'),
      verb: fc.constantFrom('reset', 'reprocess'),
      entry: small,
    }),
  ),
  weighted(
    1,
    fc.record({
      do: fc.constant('clone'),
      repository: fc.nat({ max: 1 }),
      isThere: fc.boolean(),
    }),
  ),
  weighted(1, fc.record({ do: fc.constant('dry-run'), isOn: fc.boolean() })),
)

const lag = fc.constantFrom(0, 0, 5000, 60_000)
const behaviour = fc.oneof(
  weighted(2, fc.constant<Behaviour>('change')),
  weighted(1, fc.constantFrom(...BEHAVIOURS)),
)
const setup: fc.Arbitrary<Setup> = fc.record({
  seed: fc.nat({ max: 0xffff_ffff }),
  lagMs: fc.record({
    poll: lag,
    issue: fc.constantFrom(0, 0, 2000, 10_000),
    // Longer than the settle time: the one case in which a comment may be seen twice (design §1.7).
    comments: fc.constantFrom(0, 5000, 60_000, 220_000),
    timeline: lag,
    pulls: lag,
    branch: fc.constantFrom(0, 0, 2000),
  } satisfies Record<(typeof LISTS)[number], unknown>),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  parallelism: fc.integer({ min: 1, max: 3 }),
  perRepository: fc.integer({ min: 0, max: 2 }),
  closeIssue: fc.constantFrom('finalize', 'finalize', 'merge', 'never'),
  removeLabel: fc.constantFrom(true, true, false),
  existingPull: fc.constantFrom('skip', 'skip', 'ignore'),
  archivesTrees: fc.boolean(),
  workers: fc.oneof(
    weighted(3, fc.array(behaviour, { minLength: 1, maxLength: 8 })),
    weighted(
      1,
      fc.constantFrom(...BEHAVIOURS).map((always) => [always]),
    ),
  ),
})

/** Everything a history is made of; the shrunken form is what a failure prints. */
export const histories: fc.Arbitrary<History> = fc.record({
  setup,
  labels: fc.array(fc.constantFrom('code', 'code', 'investigation', null), {
    minLength: 4,
    maxLength: 4,
  }),
  steps: fc.array(step, { minLength: 6, maxLength: 45, size: 'max' }),
})

/**
 * Faults of the engine that are known, and how a history keeps clear of each. A test names those it has to live
 * with; one that is mended leaves its list.
 */
const KEEPING_CLEAR = {
  /** `degraded.since` and `trouble.since` ahead of a clock that was set back: nothing escalates until then. */
  'since-ahead': (history) => ({
    ...history,
    steps: history.steps.map((one) =>
      one.do === 'skew' ? { ...one, ms: Math.max(one.ms, -HOUR / 4) } : one,
    ),
  }),
  /** A labelling that the timeline does not show yet is taken for looked at (engine/intake.ts). */
  'lost-wish': (history) => ({
    ...history,
    setup: { ...history.setup, lagMs: { ...history.setup.lagMs, timeline: 0 } },
  }),
  /** With `close_issue: never` an open pull request of ours does not count for `existing_pr: skip`. */
  'own-refs': ({ setup, ...history }) => ({
    ...history,
    setup: setup.closeIssue === 'never' ? { ...setup, existingPull: 'ignore' } : setup,
  }),
} as const satisfies Record<string, (history: History) => History>

export type KnownFault = keyof typeof KEEPING_CLEAR

/** Lives through one history, mends everything, and waits until nothing is left to do. Throws what does not hold. */
export async function liveThrough(history: History, tally: Tally): Promise<void> {
  const world = makeModelWorld(history.setup)
  try {
    const rules = watchRules(world, tally)
    for (const [at, label] of history.labels.entries()) {
      const repository = REPOSITORIES[at % REPOSITORIES.length] ?? REPOSITORIES[0]
      if (repository === undefined) continue
      const issue = world.github.human.add(repository)
      if (label !== null) world.github.human.label(issue, TRIGGERS[label])
    }
    for (const one of history.steps) {
      world.note(`• ${JSON.stringify(one)}`)
      await take(world, one, rules)
      rules.check()
      tally.steps += 1
    }
    await becomeQuiet(world, rules)
    rules.checkEnd()
    tally.histories += 1
    tally.ticks += world.counts.ticks
    tally.crashes += world.counts.crashes
    tally.faults += world.calls.net.met
    tally.workers += world.workers.launches()
  } finally {
    world.remove()
  }
}

async function take(world: ModelWorld, one: Step, rules: Rules): Promise<void> {
  const process = 'which' in one ? world.living()[one.which % world.living().length] : undefined
  switch (one.do) {
    case 'round':
      world.pass(one.ms)
      await world.tick(false, Infinity, null)
      return world.goAll(one.crash)
    case 'tick':
      return world.tick(one.forced, one.calls ?? Infinity, one.crash)
    case 'go':
      return process && world.go(process, one.calls ?? Infinity, one.crash)
    case 'kill':
      return process?.die()
    case 'leave':
      process?.leaving.abort()
      return
    case 'unlink':
      if (process?.kind === 'runner') world.unlinkClaim(process)
      return
    case 'human':
      return actAs(world, one.act, one.issue)
    case 'fault':
      return world.calls.fail(one.kind, one.calls, one.writesOnly)
    case 'pass':
      return world.pass(one.ms)
    case 'skew':
      if (one.ms > 0) world.time.wasSetAhead = true
      world.time.skew = Math.max(Math.min(world.time.skew + one.ms, 48 * HOUR), -24 * HOUR)
      return
    case 'operator':
      return operate(world, one.verb, one.entry, rules)
    case 'clone': {
      const repository = REPOSITORIES[one.repository]
      if (repository !== undefined) world.github.human.setClone(repository, one.isThere)
      return
    }
    case 'dry-run':
      world.options.dryRun = one.isOn
      return
    default:
      one satisfies never
  }
}

function actAs(world: ModelWorld, act: (typeof ACTS)[number], which: number): void {
  const { human, issues, issueAt } = world.github
  const written = world.lastWritten()
  const last = which >= 5 && written !== null ? issueAt(written) : null
  const issue = last ?? issues()[which % issues().length]
  if (issue === undefined) return
  const acts: Readonly<Record<typeof act, () => unknown>> = {
    label: () => human.label(issue, TRIGGERS.code),
    look: () => human.label(issue, TRIGGERS.investigation),
    unlabel: () => Object.values(TRIGGERS).map((label) => human.unlabel(issue, label)),
    relabel: () => {
      human.reopen(issue)
      human.unlabel(issue, TRIGGERS.code)
      human.label(issue, TRIGGERS.code)
    },
    close: () => human.close(issue),
    reopen: () => human.reopen(issue),
    merge: () => human.endPull(issue, true),
    'close-pull': () => human.endPull(issue, false),
    push: () => {
      const entry = world.store.readQueue().entries[issueId(issue.key)]
      const runId = entry?.runId ?? entry?.lastRunId ?? null
      const branch = runId === null ? undefined : world.journals.read(runId)?.branch
      if (branch !== undefined) human.pushTo(issue, branch)
    },
    comment: () => human.comment(issue),
    transfer: () => human.transfer(issue),
    delete: () => human.remove(issue),
    'own-pull': () => human.openPull(issue),
  }
  acts[act]()
}

/** `caduceus queue reset|reprocess`, as app/queue-change.ts does it: between ticks, and never to a living run. */
async function operate(
  world: ModelWorld,
  verb: QueueVerb,
  which: number,
  rules: Rules,
): Promise<void> {
  const { store, journals, locks } = world
  const entries = Object.values(store.readQueue().entries)
  const entry = entries[which % entries.length]
  if (entry === undefined || world.isPlanning() || refusalHint(verb, entry) !== null) return
  const runId = entry.runId ?? entry.lastRunId
  const claim = locks.take(entry.key, runId ?? makeRunId(world.now(), new Uint8Array(10)))
  if (claim === null) return
  const journal = runId === null ? null : journals.read(runId)
  const isRetained =
    journal !== null &&
    existsSync(world.layout.run(journal.runId).result) &&
    existsSync(journal.treePath)
  const fate = fateOfRun(verb, entry, journal, { isRetained, isForced: false })
  const id = issueId(entry.key)
  if (journal?.runner && journal.stage !== 'settled') world.endProcess(journal.runner.pid)
  const resume = fate.kind === 'resumed' ? { resume: fate.runId } : {}
  const event = { on: QUEUE_VERBS[verb].event, at: toTimestamp(world.now()), ...resume } as const
  rules.byOperator(id, fate.kind === 'resumed', runId)
  await store.changeQueue((queue) => {
    const { queue: state } = applyToQueue(queue, id, event, NO_RETRY)
    const { circuits } = closeCircuits(queue.circuits, entry.key, world.now(), CIRCUITS)
    return { state: { ...state, circuits }, value: undefined }
  })
  if (journal !== null) {
    if (journal.stage === 'launching') world.cancelWorker(journal.runId)
    const givenUp = giveUpRun(journal)
    if (givenUp !== journal) journals.write(givenUp)
  }
  claim.release()
}

/** These events look at no number of it. */
const NO_RETRY = { maxAttempts: 1, backoffSeconds: 1, maxDegradedSeconds: 1 }

const ROUNDS = { least: 6, most: 60, ms: 1_200_000 }

async function becomeQuiet(world: ModelWorld, rules: Rules): Promise<void> {
  world.note('• everything is mended')
  world.calls.mend()
  for (const name of REPOSITORIES) world.github.human.setClone(name, true)
  world.options.healthy = true
  let [last, still] = ['', 0]
  for (let round = 1; round <= ROUNDS.most; round += 1) {
    world.pass(ROUNDS.ms)
    await world.goAll()
    await world.tick(false, Infinity, null)
    await world.goAll()
    rules.check()
    if (round >= ROUNDS.least && isQuiet(world)) return
    const queue = JSON.stringify(world.store.readQueue().entries)
    still = queue === last ? still + 1 : 0
    last = queue
    if (still > 12) return // nothing changes any more
  }
}

/**
 * Lives through so many random histories, and prints what they held. The seed and the shrunken history are in the
 * message of a failure.
 */
export async function liveThroughMany(
  numRuns: number,
  known: readonly KnownFault[],
): Promise<Tally> {
  const tally = newTally()
  const avoid = (history: History): History =>
    known.reduce((left, name) => KEEPING_CLEAR[name](left), history)
  await fc.assert(
    fc.asyncProperty(histories.map(avoid), async (history) => liveThrough(history, tally)),
    { numRuns, verbose: fc.VerbosityLevel.Verbose },
  )
  process.stdout.write(`${describe(tally)}\n`)
  return tally
}

function describe({ phases, ...counts }: Tally): string {
  const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  const reached = Object.entries(phases).map(([phase, count]) => `${phase} ${count}`)
  return `histories: ${told.join(', ')}; reached: ${reached.join(', ')}`
}
