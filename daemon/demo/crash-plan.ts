import {
  type Journal,
  PUBLISH_PLANS,
  PUBLISH_STAGES,
  type PublishStage,
  type RunStage,
} from '../core/journal.ts'

// What `demo --crash` kills, where in the run and how long after that: all of it follows from a seed. When
// exactly a blow falls depends on the machine. Pure.

/** The daemon's processes. */
export type ProcessName = 'tick' | 'runner' | 'supervisor'

/** What one blow hits. The first process has to be there; what else is there is hit as well. */
export const VICTIMS = {
  tick: { processes: ['tick'], takesChildren: false },
  runner: { processes: ['runner'], takesChildren: false },
  /** With the git commands it has started. */
  'runner and children': { processes: ['runner'], takesChildren: true },
  supervisor: { processes: ['supervisor'], takesChildren: false },
  everything: { processes: ['supervisor', 'runner', 'tick'], takesChildren: true },
} as const satisfies Record<
  string,
  { processes: readonly [ProcessName, ...ProcessName[]]; takesChildren: boolean }
>

type Victim = keyof typeof VICTIMS

/** How far a run comes, publish stages included, in order. */
const POINTS = [
  'starting',
  'owned',
  'launching',
  'finished',
  'publishing',
  ...PUBLISH_STAGES,
  'ended',
] as const

type Point = (typeof POINTS)[number]

export type PlannedKill = Readonly<{
  victim: Victim
  /** The run must have come so far; null = whatever it does. */
  after: Point | null
  /** From when both were seen. */
  delayMs: number
}>

/** The longest delay: about as long as the work there takes. */
const SPREAD_MS = { tick: 500, owned: 150, launching: 150, finished: 60, publishing: 25 } as const

/**
 * While the worker is at work. A lost supervisor is an interruption, of which an issue may have three
 * (design §6), so two at most are killed.
 */
const WORKER_BLOWS: Choice<readonly Victim[]> = [
  ['runner'],
  ['supervisor', 'runner'],
  ['everything', 'runner'],
  ['supervisor', 'everything'],
]

const RUNNER_BLOWS: Choice<Victim> = ['runner', 'runner', 'runner and children']
const PUBLISH_POINTS: readonly Point[] = ['publishing', ...PUBLISH_STAGES.slice(0, -1)]
const PUBLISH_BLOWS = 3

type Choice<T> = readonly [T, ...T[]]

/**
 * The blows of a demo, the same for the same seed: at 8 to 11 processes, of which the last three may get
 * away by being through with their work.
 */
export function planKills(seed: number): readonly PlannedKill[] {
  const random = randomOf(seed)
  const pick = <T>(choice: Choice<T>): T =>
    choice[Math.floor(random() * choice.length)] ?? choice[0]
  const blow = (victim: Victim, after: Point | null, spreadMs: number): PlannedKill => ({
    victim,
    after,
    delayMs: Math.round(random() * spreadMs),
  })
  const ofRun = [
    blow(pick(RUNNER_BLOWS), 'owned', SPREAD_MS.owned),
    ...pick(WORKER_BLOWS).map((victim) => blow(victim, 'launching', SPREAD_MS.launching)),
    blow(pick(RUNNER_BLOWS), 'finished', SPREAD_MS.finished),
    ...sample(random, PUBLISH_POINTS, PUBLISH_BLOWS).map((point) =>
      blow(pick(RUNNER_BLOWS), point, SPREAD_MS.publishing),
    ),
  ]
  // The first tick may be hit before it has claimed anything, a later one while it takes the run over. Not so
  // late that there may be none: publishing takes a moment only, and its blows may come too late.
  const place = Math.floor(random() * (ofRun.length - PUBLISH_BLOWS + 1))
  ofRun.splice(place, 0, blow('tick', null, SPREAD_MS.tick))
  return [blow('tick', null, SPREAD_MS.tick), ...ofRun]
}

/** So many different ones, in their order. */
function sample<T>(random: () => number, list: readonly T[], count: number): readonly T[] {
  const ranked = list.map((item, place) => ({ item, place, rank: random() }))
  const chosen = ranked.toSorted((a, b) => a.rank - b.rank).slice(0, count)
  return chosen.toSorted((a, b) => a.place - b.place).map(({ item }) => item)
}

/** Numbers in [0, 1) that follow from a seed alone (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What a runner does at a stage. */
const DOING = {
  starting: 'started',
  owned: 'made the tree',
  launching: 'watched over the worker',
  finished: 'checked the change',
  publishing: 'published',
  ended: 'told the queue',
  settled: 'left',
} as const satisfies Record<RunStage, string>

/** The same while it publishes, by what it does next. */
const PUBLISHING = {
  committed: 'made the commit',
  pushed: 'pushed the branch',
  pr_created: 'opened the pull request',
  commented: 'wrote the comment',
  label_removed: 'removed the label',
  closed: 'closed the issue',
} as const satisfies Record<PublishStage, string>

/** Whether a run has come to where a blow is meant to fall, and is not over. */
export function isInReach(journal: Journal | null, { after }: PlannedKill): boolean {
  if (after === null) return true
  const point = pointOf(journal)
  return point !== null && POINTS.indexOf(point) >= POINTS.indexOf(after)
}

/** Waits this long are watched once. */
const LONG_WAIT_MS = 10_000

/** Whether a blow can fall no more, or should not: its worker has been kept to the end, or the run waits. */
export function isMissed(journal: Journal | null, { victim }: PlannedKill, now: number): boolean {
  const wait = journal?.notBefore ?? null
  if (wait !== null && Date.parse(wait) - now > LONG_WAIT_MS) return true
  const point = pointOf(journal)
  const isRetained = point !== null && POINTS.indexOf(point) > POINTS.indexOf('launching')
  return isRetained && VICTIMS[victim].processes[0] === 'supervisor'
}

/** Names a run and how far it has come; the same as long as it comes no further. */
export function locationOf(journal: Journal | null): string {
  return `${journal?.runId} ${pointOf(journal)}`
}

function pointOf(journal: Journal | null): Point | null {
  if (journal === null || journal.stage === 'settled') return null
  const done = PUBLISH_STAGES.filter((stage) => journal.markers[stage] !== undefined).at(-1)
  return journal.stage === 'publishing' && done !== undefined ? done : journal.stage
}

/** What a process does at this place of a run, for people. */
export function activityOf(process: ProcessName, journal: Journal | null): string {
  if (process === 'tick') return journal === null ? 'looked for work' : 'looked after the run'
  if (process === 'supervisor' || journal === null) return 'kept the worker'
  const stages = journal.publication === null ? [] : PUBLISH_PLANS[journal.publication.plan]
  const next = stages.find((stage) => journal.markers[stage] === undefined)
  return journal.stage === 'publishing' && next !== undefined
    ? PUBLISHING[next]
    : DOING[journal.stage]
}
