import { mentionedIssues } from './issue-references.ts'
import { findIssue, findRepository } from './repositories.ts'
import {
  type EventKind,
  type Issue,
  type IssueEvent,
  type Repository,
  takeId,
  type World,
} from './world.ts'

/** What an event carries beyond kind, actor and time. */
type EventDetails = Partial<
  Pick<IssueEvent, 'label' | 'rename' | 'commitOid' | 'stateReason' | 'source'>
>

/** Adds an event to an issue, which counts as updated then. */
export function recordEvent(
  world: World,
  issue: Issue,
  kind: EventKind,
  by: Readonly<{ actorId: number | null; now: number }>,
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
export function crossReference(
  world: World,
  repository: Repository,
  source: Issue,
  text: string,
  by: Readonly<{ actorId: number | null; now: number }>,
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
