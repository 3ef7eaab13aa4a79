import {
  type Journal,
  PUBLISH_ACTIONS,
  PUBLISH_PLANS,
  type PublishAction,
  type RunStage,
} from '../core/journal.ts'
import { type PlannedKill, POINTS, type Point, type ProcessName, VICTIMS } from './crash-plan.ts'

/** What a runner does at a stage, for people. */
const DOING = {
  starting: 'started',
  owned: 'made the tree',
  launching: 'watched over the worker',
  finished: 'checked the change',
  publishing: 'published',
  ended: 'updated the queue',
  settled: 'exited',
} as const satisfies Record<RunStage, string>

/** What a publishing runner does, by its next action. */
const PUBLISHING = {
  committed: 'made the commit',
  pushed: 'pushed the branch',
  pr_created: 'opened the pull request',
  commented: 'wrote the comment',
  label_removed: 'removed the label',
  closed: 'closed the issue',
} as const satisfies Record<PublishAction, string>

/** Whether a run has reached the point of a kill and is not over. */
export function isInReach(journal: Journal | null, { after }: PlannedKill): boolean {
  if (after === null) return true
  const point = pointOf(journal)
  return point !== null && POINTS.indexOf(point) >= POINTS.indexOf(after)
}

/** A run that waits longer than this is not killed again. */
const LONG_WAIT_MS = 10_000

/** Whether a kill is dropped: its supervisor has already ended, or the run waits for a long time. */
export function isMissed(journal: Journal | null, { victim }: PlannedKill, now: number): boolean {
  const wait = journal?.notBefore ?? null
  if (wait !== null && Date.parse(wait) - now > LONG_WAIT_MS) return true
  const point = pointOf(journal)
  const isWorkerOver = point !== null && POINTS.indexOf(point) > POINTS.indexOf('launching')
  return isWorkerOver && VICTIMS[victim].processes[0] === 'supervisor'
}

/** Names a run and its point; the same text as long as the run comes no further. */
export function locationOf(journal: Journal | null): string {
  return `${journal?.runId} ${pointOf(journal)}`
}

function pointOf(journal: Journal | null): Point | null {
  if (journal === null || journal.stage === 'settled') return null
  const done = PUBLISH_ACTIONS.filter((action) => journal.markers[action] !== undefined).at(-1)
  return journal.stage === 'publishing' && done !== undefined ? done : journal.stage
}

/** What a process does at this point of a run, for people. */
export function activityOf(process: ProcessName, journal: Journal | null): string {
  if (process === 'tick') return journal === null ? 'polled for work' : 'recovered the run'
  if (process === 'supervisor' || journal === null) return 'supervised the worker'
  const actions = journal.publication === null ? [] : PUBLISH_PLANS[journal.publication.plan]
  const next = actions.find((action) => journal.markers[action] === undefined)
  return journal.stage === 'publishing' && next !== undefined
    ? PUBLISHING[next]
    : DOING[journal.stage]
}
