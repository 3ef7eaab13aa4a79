// What operators do with issues and pull requests, in the name of `actor` (the maintainer unless said).

import { accountById } from './accounts.ts'
import { byActor } from './control-repositories.ts'
import type { Hub } from './hub.ts'
import {
  addComment,
  addLabels,
  closeIssue as close,
  deleteComment as dropComment,
  editIssue as edit,
  findComment,
  labelsOf,
  openIssue,
  recordEvent,
  removeLabel,
  reopenIssue as reopen,
} from './issues.ts'
import {
  type MergeMethod,
  mergePull as merge,
  openPull,
  type PullOrder,
  pinOids,
  pullOids,
} from './pulls.ts'
import { refused, requireIssue, requireRepository } from './repositories.ts'
import { type Issue, isPull, type Repository, type StateReason } from './world.ts'

type Target = Readonly<{ repo: string; number: number }>
type Act = Target & Readonly<{ actor?: string }>

function find(hub: Hub, { repo, number }: Target): { repository: Repository; issue: Issue } {
  const repository = requireRepository(hub.world, repo)
  return { repository, issue: requireIssue(repository, number) }
}

type IssueOrder = Readonly<{
  title: string
  body?: string | null
  author?: string
  labels?: readonly string[]
}>

export function createIssue(
  hub: Hub,
  { repo, ...order }: IssueOrder & Readonly<{ repo: string }>,
): Readonly<{ number: number }> {
  const [number = 0] = createIssues(hub, { repo, issues: [order] }).numbers
  return { number }
}

export function createIssues(
  hub: Hub,
  { repo, issues }: Readonly<{ repo: string; issues: readonly IssueOrder[] }>,
): Readonly<{ numbers: readonly number[] }> {
  const repository = requireRepository(hub.world, repo)
  const numbers = issues.map(({ title, body = null, labels = [], author }) => {
    return openIssue(hub.world, repository, { title, body, labels }, byActor(hub, author)).number
  })
  return { numbers }
}

/** @param order `overlay` is laid over its JSON from then on, for answers GitHub should not give; null takes it away */
export function editIssue(
  hub: Hub,
  order: Act &
    Readonly<{
      title?: string
      body?: string | null
      overlay?: Readonly<Record<string, unknown>> | null
    }>,
): void {
  const { repository, issue } = find(hub, order)
  edit(hub.world, repository, issue, order, byActor(hub, order.actor))
  if (order.overlay !== undefined) issue.overlay = order.overlay
}

/** Also closes pull requests, without merging them. */
export function closeIssue(hub: Hub, order: Act & Readonly<{ reason?: StateReason }>): void {
  const { repository, issue } = find(hub, order)
  pinOids(hub, repository, issue)
  const how = order.reason === undefined ? {} : { reason: order.reason }
  close(hub.world, issue, byActor(hub, order.actor), how)
}

export function reopenIssue(hub: Hub, order: Act): void {
  reopen(hub.world, find(hub, order).issue, byActor(hub, order.actor))
}

export function labelIssue(hub: Hub, order: Act & Readonly<{ label: string }>): void {
  const { repository, issue } = find(hub, order)
  addLabels(hub.world, repository, issue, [order.label], byActor(hub, order.actor))
}

export function unlabelIssue(hub: Hub, order: Act & Readonly<{ label: string }>): void {
  const { repository, issue } = find(hub, order)
  const by = byActor(hub, order.actor)
  if (removeLabel(hub.world, repository, issue, order.label, by)) return
  throw refused(`issue ${order.number} does not have the label ${order.label}`)
}

export function commentIssue(
  hub: Hub,
  order: Act & Readonly<{ body: string }>,
): Readonly<{ id: number }> {
  const { repository, issue } = find(hub, order)
  return { id: addComment(hub.world, repository, issue, order.body, byActor(hub, order.actor)).id }
}

export function deleteComment(hub: Hub, order: Readonly<{ repo: string; id: number }>): void {
  const placed = findComment(requireRepository(hub.world, order.repo), order.id)
  if (placed === null) throw refused(`there is no comment ${order.id}`)
  dropComment(placed, hub.clock.now())
}

/** Reading it answers 410 from then on. */
export function deleteIssue(hub: Hub, order: Target): void {
  find(hub, order).issue.departure = { kind: 'deleted' }
}

/** A copy in the other repository; reading the old one leads there. */
export function transferIssue(
  hub: Hub,
  order: Act & Readonly<{ to: string }>,
): Readonly<{ number: number }> {
  const { repository, issue } = find(hub, order)
  const target = requireRepository(hub.world, order.to)
  const { title, body } = issue
  const author = { actorId: issue.authorId, now: hub.clock.now() }
  const labels = labelsOf(repository, issue).map(({ name }) => name)
  const copy = openIssue(hub.world, target, { title, body, labels }, author)
  copy.comments.push(...issue.comments)
  recordEvent(hub.world, copy, 'transferred', byActor(hub, order.actor))
  issue.departure = { kind: 'transferred', repositoryId: target.id, number: copy.number }
  return { number: copy.number }
}

/** Opens a pull request for somebody. */
export async function createPull(
  hub: Hub,
  { repo, author, ...order }: PullOrder & Readonly<{ repo: string; author?: string }>,
): Promise<Readonly<{ number: number }>> {
  const repository = requireRepository(hub.world, repo)
  const outcome = await openPull(hub, repository, order, byActor(hub, author))
  if (outcome.kind === 'created') return { number: outcome.issue.number }
  throw refused(
    outcome.problems.map(({ field, code, message }) => message ?? `${field} ${code}`).join('; '),
  )
}

/** Merges a pull request; issues that it promises to close are closed by the merger. */
export async function mergePull(
  hub: Hub,
  order: Act & Readonly<{ method?: MergeMethod }>,
): Promise<Readonly<{ oid: string }>> {
  const { repository, issue } = find(hub, order)
  const actor = byActor(hub, order.actor).account
  const outcome = await merge(hub, repository, issue, { actor, method: order.method ?? 'merge' })
  if (outcome.kind === 'merged') return { oid: outcome.oid }
  throw refused(`pull request ${order.number} cannot be merged: ${outcome.reason}`)
}

/** Everything about one issue or pull request; times in milliseconds since the epoch. */
export function readIssue(hub: Hub, order: Target) {
  const { repository, issue } = find(hub, order)
  const login = (id: number | null) => accountById(hub.world, id)?.login ?? null
  return {
    number: issue.number,
    title: issue.title,
    body: issue.body,
    author: login(issue.authorId),
    state: issue.state,
    stateReason: issue.stateReason,
    closedBy: login(issue.closedById),
    updatedAt: issue.updatedAt,
    labels: labelsOf(repository, issue).map(({ name }) => name),
    comments: issue.comments.map(({ id, authorId, body, createdAt }) => {
      return { id, author: login(authorId), body, createdAt }
    }),
    events: issue.events.map(({ id, kind, actorId, label, createdAt }) => {
      return { id, kind, actor: login(actorId), label: label?.name ?? null, createdAt }
    }),
    pull: isPull(issue)
      ? {
          headBranch: issue.pull.headBranch,
          baseBranch: issue.pull.baseBranch,
          ...pullOids(hub, repository, issue),
          isMerged: issue.pull.mergedAt !== null,
          mergedBy: login(issue.pull.mergedById),
          mergeCommitOid: issue.pull.mergeCommitOid,
        }
      : null,
  }
}

/** All issues and pull requests of a repository, by rising number. */
export function listIssues(hub: Hub, { repo }: Readonly<{ repo: string }>) {
  const { issues } = requireRepository(hub.world, repo)
  return issues.map(({ number }) => readIssue(hub, { repo, number }))
}
