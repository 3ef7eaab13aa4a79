import {
  type Journal,
  PUBLISH_PLANS,
  PUBLISH_STAGES,
  type PublishStage,
  type RunStage,
} from '../core/journal.ts'
import { type PlannedKill, POINTS, type Point, type ProcessName, VICTIMS } from './crash-plan.ts'

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
