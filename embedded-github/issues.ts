// What is done with an issue, pull requests included, and what it leaves: labels, comments, events.

import { findIssue, findRepository, mentionedIssues } from './repositories.ts'
import {
  type By,
  type Comment,
  type EventKind,
  type Issue,
  type IssueEvent,
  type Label,
  type Pull,
  type Repository,
  type StateReason,
  takeId,
  type World,
} from './world.ts'

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

/** GitHub's colour for a label made without one. */
const DEFAULT_COLOR = 'ededed'

/** GitHub compares label names without case, and otherwise exactly. */
export function findLabel(repository: Repository, name: string): Label | null {
  const wanted = name.toLowerCase()
  return repository.labels.find((label) => label.name.toLowerCase() === wanted) ?? null
}

/** The repository's label of that name, made when there is none. */
export function ensureLabel(
  world: World,
  repository: Repository,
  name: string,
  look: Readonly<{ color?: string; description?: string }> = {},
): Label {
  const found = findLabel(repository, name)
  if (found !== null) return found
  const { color = DEFAULT_COLOR, description = '' } = look
  const label = { id: takeId(world), name, color, description }
  repository.labels.push(label)
  return label
}

export function labelsOf(repository: Repository, issue: Issue): readonly Label[] {
  return repository.labels.filter((label) => issue.labelIds.includes(label.id))
}

/** Labels an issue, one event per label it did not have yet. */
export function addLabels(
  world: World,
  repository: Repository,
  issue: Issue,
  names: readonly string[],
  by: By,
): void {
  for (const name of names) {
    const label = ensureLabel(world, repository, name)
    if (issue.labelIds.includes(label.id)) continue
    issue.labelIds.push(label.id)
    recordEvent(world, issue, 'labeled', by, { label: shown(label) })
  }
}

/** @returns false when the issue does not have the label */
export function removeLabel(
  world: World,
  repository: Repository,
  issue: Issue,
  name: string,
  by: By,
): boolean {
  const label = findLabel(repository, name)
  if (label === null || !issue.labelIds.includes(label.id)) return false
  issue.labelIds = issue.labelIds.filter((id) => id !== label.id)
  recordEvent(world, issue, 'unlabeled', by, { label: shown(label) })
  return true
}

/** Gives an issue exactly these labels. */
export function setLabels(
  world: World,
  repository: Repository,
  issue: Issue,
  names: readonly string[],
  by: By,
): void {
  const wanted = names.map((name) => name.toLowerCase())
  for (const { name } of labelsOf(repository, issue)) {
    if (!wanted.includes(name.toLowerCase())) removeLabel(world, repository, issue, name, by)
  }
  addLabels(world, repository, issue, names, by)
}

const shown = ({ name, color }: Label) => ({ name, color })

/** A comment with the issue it is on. */
export type PlacedComment = Readonly<{ issue: Issue; comment: Comment }>

export function findComment(repository: Repository, id: number): PlacedComment | null {
  for (const issue of repository.issues) {
    const comment = issue.comments.find((candidate) => candidate.id === id)
    if (comment !== undefined) return { issue, comment }
  }
  return null
}

export function addComment(
  world: World,
  repository: Repository,
  issue: Issue,
  body: string,
  by: By,
): Comment {
  const comment = {
    id: takeId(world),
    authorId: by.actorId,
    body,
    createdAt: by.now,
    updatedAt: by.now,
  }
  issue.comments.push(comment)
  touch(issue, by.now)
  crossReference(world, repository, issue, body, by)
  return comment
}

export function editComment({ issue, comment }: PlacedComment, body: string, now: number): void {
  comment.body = body
  comment.updatedAt = now
  touch(issue, now)
}

export function deleteComment({ issue, comment }: PlacedComment, now: number): void {
  issue.comments.splice(issue.comments.indexOf(comment), 1)
  touch(issue, now)
}

/** What an event carries beyond kind, actor and time. */
type EventDetails = Partial<
  Pick<IssueEvent, 'label' | 'rename' | 'commitOid' | 'stateReason' | 'source'>
>

/** Adds an event to an issue, which counts as updated then. */
export function recordEvent(
  world: World,
  issue: Issue,
  kind: EventKind,
  by: By,
  details: EventDetails = {},
): IssueEvent {
  const event = {
    id: takeId(world),
    kind,
    actorId: by.actorId,
    createdAt: by.now,
    label: null,
    rename: null,
    commitOid: null,
    stateReason: null,
    source: null,
    ...details,
  }
  issue.events.push(event)
  touch(issue, by.now)
  return event
}

/** Marks something as having happened on an issue. */
export function touch(issue: Issue, now: number): void {
  issue.updatedAt = Math.max(issue.updatedAt, now)
}

/** Leaves a cross-reference on every issue that a text written in `source` mentions, once per source. */
function crossReference(
  world: World,
  repository: Repository,
  source: Issue,
  text: string,
  by: By,
): void {
  for (const mention of mentionedIssues(text, repository)) {
    const target = findRepository(world, mention.owner, mention.name)
    const issue = target === null ? null : findIssue(target, mention.number)
    if (issue === null || issue === source) continue
    const from = { repositoryId: repository.id, number: source.number }
    const isKnown = issue.events.some(
      ({ source: known }) =>
        known?.repositoryId === from.repositoryId && known.number === from.number,
    )
    if (!isKnown) recordEvent(world, issue, 'cross-referenced', by, { source: from })
  }
}
