import { PUBLISH_STAGES } from '../core/journal.ts'
import { randomOf, sample } from './seeded-random.ts'

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
export const POINTS = [
  'starting',
  'owned',
  'launching',
  'finished',
  'publishing',
  ...PUBLISH_STAGES,
  'ended',
] as const

export type Point = (typeof POINTS)[number]

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
