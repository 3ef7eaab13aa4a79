import { addLabels } from './labels.ts'
import { crossReference, recordEvent, touch } from './timeline.ts'
import {
  type Issue,
  type Pull,
  type Repository,
  type StateReason,
  takeId,
  type World,
} from './world.ts'

type By = Readonly<{ actorId: number | null; now: number }>

/** Longest body GitHub takes, for issues, pull requests and comments alike; in characters. */
export const MAX_BODY_CHARACTERS = 65_536
export const MAX_TITLE_CHARACTERS = 256

/** Opens an issue, or a pull request when `pull` is given; its labels come with one event each. */
export function openIssue(
  world: World,
  repository: Repository,
  order: Readonly<{
    title: string
    body: string | null
    labels?: readonly string[]
    pull?: Pull
  }>,
  by: By,
): Issue {
  const issue: Issue = {
    id: takeId(world),
    number: repository.nextNumber,
    title: order.title,
    body: order.body,
    authorId: by.actorId,
    state: 'open',
    stateReason: null,
    createdAt: by.now,
    updatedAt: by.now,
    closedAt: null,
    closedById: null,
    labelIds: [],
    comments: [],
    events: [],
    pull: order.pull ?? null,
    departure: null,
    overlay: null,
  }
  repository.nextNumber += 1
  repository.issues.push(issue)
  addLabels(world, repository, issue, order.labels ?? [], by)
  crossReference(world, repository, issue, order.body ?? '', by)
  return issue
}

/** Changes title or body; what stays the same leaves no trace. */
export function editIssue(
  world: World,
  repository: Repository,
  issue: Issue,
  change: Readonly<{ title?: string; body?: string | null }>,
  by: By,
): void {
  const { title = issue.title, body = issue.body } = change
  if (title !== issue.title) {
    recordEvent(world, issue, 'renamed', by, { rename: { from: issue.title, to: title } })
    issue.title = title
  }
  if (body !== issue.body) {
    issue.body = body
    touch(issue, by.now)
    crossReference(world, repository, issue, body ?? '', by)
  }
}

/** Closes an open issue or pull request; nothing happens to a closed one. */
export function closeIssue(
  world: World,
  issue: Issue,
  by: By,
  how: Readonly<{ reason?: StateReason; commitOid?: string | null }> = {},
): void {
  if (issue.state === 'closed') return
  const stateReason = issue.pull === null ? (how.reason ?? 'completed') : null
  issue.state = 'closed'
  issue.stateReason = stateReason
  issue.closedAt = by.now
  issue.closedById = by.actorId
  recordEvent(world, issue, 'closed', by, { stateReason, commitOid: how.commitOid ?? null })
}

/** Opens a closed issue again; nothing happens to an open one. */
export function reopenIssue(world: World, issue: Issue, by: By): void {
  if (issue.state === 'open') return
  issue.state = 'open'
  issue.stateReason = issue.pull === null ? 'reopened' : null
  issue.closedAt = null
  issue.closedById = null
  recordEvent(world, issue, 'reopened', by)
}
