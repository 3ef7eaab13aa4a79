// What operators do with pull requests, in the name of `actor` (the maintainer unless said).

import { byActor } from './control-accounts.ts'
import { type Act, find } from './control-issues.ts'
import { requireRepository } from './find-repository.ts'
import { type MergeMethod, mergePull as merge } from './merge-pull.ts'
import { openPull, type PullOrder } from './open-pull.ts'
import { refused } from './refused.ts'
import type { ServerContext } from './server-context.ts'

/** Opens a pull request in the name of `author`. */
export async function createPull(
  context: ServerContext,
  { repo, author, ...order }: PullOrder & Readonly<{ repo: string; author?: string }>,
): Promise<Readonly<{ number: number }>> {
  const repository = requireRepository(context.state, repo)
  const outcome = await openPull(context, repository, order, byActor(context, author))
  if (outcome.kind === 'created') return { number: outcome.issue.number }
  throw refused(
    outcome.problems.map(({ field, code, message }) => message ?? `${field} ${code}`).join('; '),
  )
}

/** Merges a pull request; issues that it promises to close are closed by the merger. */
export async function mergePull(
  context: ServerContext,
  order: Act & Readonly<{ method?: MergeMethod }>,
): Promise<Readonly<{ oid: string }>> {
  const { repository, issue } = find(context, order)
  const actor = byActor(context, order.actor).account
  const outcome = await merge(context, repository, issue, {
    actor,
    method: order.method ?? 'merge',
  })
  if (outcome.kind === 'merged') return { oid: outcome.oid }
  throw refused(`pull request ${order.number} cannot be merged: ${outcome.reason}`)
}
