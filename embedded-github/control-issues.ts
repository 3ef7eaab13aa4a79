// What operators do with issues, in the name of `actor` (the maintainer unless said).

import { addComment, deleteComment as dropComment, findComment } from './comments.ts'
import { byActor } from './control-accounts.ts'
import { requireIssue, requireRepository } from './find-repository.ts'
import { recordEvent } from './issue-events.ts'
import {
  closeIssue as close,
  editIssue as edit,
  openIssue,
  reopenIssue as reopen,
} from './issues.ts'
import { addLabels, labelsOf, removeLabel } from './labels.ts'
import { pinOids } from './pull-commits.ts'
import { refused } from './refused.ts'
import type { ServerContext } from './server-context.ts'
import type { Issue, Repository, StateReason } from './state.ts'

export type Target = Readonly<{ repo: string; number: number }>

export type Act = Target & Readonly<{ actor?: string }>

export function find(
  context: ServerContext,
  { repo, number }: Target,
): { repository: Repository; issue: Issue } {
  const repository = requireRepository(context.state, repo)
  return { repository, issue: requireIssue(repository, number) }
}

type IssueOrder = Readonly<{
  title: string
  body?: string | null
  author?: string
  labels?: readonly string[]
}>

export function createIssue(
  context: ServerContext,
  { repo, ...order }: IssueOrder & Readonly<{ repo: string }>,
): Readonly<{ number: number }> {
  const [number = 0] = createIssues(context, { repo, issues: [order] }).numbers
  return { number }
}

export function createIssues(
  context: ServerContext,
  { repo, issues }: Readonly<{ repo: string; issues: readonly IssueOrder[] }>,
): Readonly<{ numbers: readonly number[] }> {
  const repository = requireRepository(context.state, repo)
  const numbers = issues.map(({ title, body = null, labels = [], author }) => {
    return openIssue(context.state, repository, { title, body, labels }, byActor(context, author))
      .number
  })
  return { numbers }
}

/** @param order `overlay` is laid over its JSON from then on, for answers GitHub should not give; null takes it away */
export function editIssue(
  context: ServerContext,
  order: Act &
    Readonly<{
      title?: string
      body?: string | null
      overlay?: Readonly<Record<string, unknown>> | null
    }>,
): void {
  const { repository, issue } = find(context, order)
  edit(context.state, repository, issue, order, byActor(context, order.actor))
  if (order.overlay !== undefined) issue.overlay = order.overlay
}

/** Also closes pull requests, without merging them. */
export function closeIssue(
  context: ServerContext,
  order: Act & Readonly<{ reason?: StateReason }>,
): void {
  const { repository, issue } = find(context, order)
  pinOids(context, repository, issue)
  const how = order.reason === undefined ? {} : { reason: order.reason }
  close(context.state, issue, byActor(context, order.actor), how)
}

export function reopenIssue(context: ServerContext, order: Act): void {
  reopen(context.state, find(context, order).issue, byActor(context, order.actor))
}

export function labelIssue(context: ServerContext, order: Act & Readonly<{ label: string }>): void {
  const { repository, issue } = find(context, order)
  addLabels(context.state, repository, issue, [order.label], byActor(context, order.actor))
}

export function unlabelIssue(
  context: ServerContext,
  order: Act & Readonly<{ label: string }>,
): void {
  const { repository, issue } = find(context, order)
  const by = byActor(context, order.actor)
  if (removeLabel(context.state, repository, issue, order.label, by)) return
  throw refused(`issue ${order.number} does not have the label ${order.label}`)
}

export function commentIssue(
  context: ServerContext,
  order: Act & Readonly<{ body: string }>,
): Readonly<{ id: number }> {
  const { repository, issue } = find(context, order)
  return {
    id: addComment(context.state, repository, issue, order.body, byActor(context, order.actor)).id,
  }
}

export function deleteComment(
  context: ServerContext,
  order: Readonly<{ repo: string; id: number }>,
): void {
  const placed = findComment(requireRepository(context.state, order.repo), order.id)
  if (placed === null) throw refused(`there is no comment ${order.id}`)
  dropComment(placed, context.clock.now())
}

/** Reading it answers 410 from then on. */
export function deleteIssue(context: ServerContext, order: Target): void {
  find(context, order).issue.departure = { kind: 'deleted' }
}

/** A copy in the other repository; reading the old one leads there. */
export function transferIssue(
  context: ServerContext,
  order: Act & Readonly<{ to: string }>,
): Readonly<{ number: number }> {
  const { repository, issue } = find(context, order)
  const target = requireRepository(context.state, order.to)
  const { title, body } = issue
  const author = { actorId: issue.authorId, now: context.clock.now() }
  const labels = labelsOf(repository, issue).map(({ name }) => name)
  const copy = openIssue(context.state, target, { title, body, labels }, author)
  copy.comments.push(...issue.comments)
  recordEvent(context.state, copy, 'transferred', byActor(context, order.actor))
  issue.departure = { kind: 'transferred', repositoryId: target.id, number: copy.number }
  return { number: copy.number }
}
