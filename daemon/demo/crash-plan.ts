import { PUBLISH_ACTIONS } from '../core/journal.ts'
import { randomOf, sample } from './seeded-random.ts'

// The kills of `demo --crash`: which process, at which point of the run, and how long after that point. All of it
// follows from a seed; only the exact moment depends on the machine.

/** The daemon's processes. */
export type ProcessName = 'tick' | 'runner' | 'supervisor'

/** What one kill hits. The first process must exist; the others are killed too where they exist. */
export const VICTIMS = {
  tick: { processes: ['tick'], takesChildren: false },
  runner: { processes: ['runner'], takesChildren: false },
  /** The runner with the git commands it has started. */
  'runner and children': { processes: ['runner'], takesChildren: true },
  supervisor: { processes: ['supervisor'], takesChildren: false },
  everything: { processes: ['supervisor', 'runner', 'tick'], takesChildren: true },
} as const satisfies Record<
  string,
  { processes: readonly [ProcessName, ...ProcessName[]]; takesChildren: boolean }
>

type Victim = keyof typeof VICTIMS

/** The points that a run passes, in order: its stages, and its publish actions while it publishes. */
export const POINTS = [
  'starting',
  'owned',
  'launching',
  'finished',
  'publishing',
  ...PUBLISH_ACTIONS,
  'ended',
] as const

export type Point = (typeof POINTS)[number]

export type PlannedKill = Readonly<{
  victim: Victim
  /** The point that the run must have reached; null = any. */
  after: Point | null
  /** Counted from the moment at which both the process and the point were seen. */
  delayMs: number
}>

/** The longest delay at each point: about as long as the work there takes. */
const SPREAD_MS = { tick: 500, owned: 150, launching: 150, finished: 60, publishing: 25 } as const

/**
 * Kills while the worker is at work. A lost supervisor is an interruption, of which an issue may have
 * `LIMITS.interruptions`, so at most two supervisors are killed.
 */
const WORKER_KILLS: Choice<readonly Victim[]> = [
  ['runner'],
  ['supervisor', 'runner'],
  ['everything', 'runner'],
  ['supervisor', 'everything'],
]

const RUNNER_KILLS: Choice<Victim> = ['runner', 'runner', 'runner and children']
const PUBLISH_POINTS: readonly Point[] = ['publishing', ...PUBLISH_ACTIONS.slice(0, -1)]
const PUBLISH_KILLS = 3

type Choice<T> = readonly [T, ...T[]]

/**
 * The kills of a demo, the same for the same seed: 8 to 11 processes. The last three may be missed, because
 * their work may be finished before.
 */
export function planKills(seed: number): readonly PlannedKill[] {
  const random = randomOf(seed)
  const pick = <T>(choice: Choice<T>): T =>
    choice[Math.floor(random() * choice.length)] ?? choice[0]
  const kill = (victim: Victim, after: Point | null, spreadMs: number): PlannedKill => ({
    victim,
    after,
    delayMs: Math.round(random() * spreadMs),
  })
  const ofRun = [
    kill(pick(RUNNER_KILLS), 'owned', SPREAD_MS.owned),
    ...pick(WORKER_KILLS).map((victim) => kill(victim, 'launching', SPREAD_MS.launching)),
    kill(pick(RUNNER_KILLS), 'finished', SPREAD_MS.finished),
    ...sample(random, PUBLISH_POINTS, PUBLISH_KILLS).map((point) =>
      kill(pick(RUNNER_KILLS), point, SPREAD_MS.publishing),
    ),
  ]
  // The first tick may be killed before it has claimed anything, a later one while it adopts the run. The later
  // one comes before the kills of publishing, which takes only a moment, because after it there may be no tick.
  const position = Math.floor(random() * (ofRun.length - PUBLISH_KILLS + 1))
  ofRun.splice(position, 0, kill('tick', null, SPREAD_MS.tick))
  return [kill('tick', null, SPREAD_MS.tick), ...ofRun]
}
