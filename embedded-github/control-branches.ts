// What operators do with branches, as a push by a user would.

import { identityOf } from './accounts.ts'
import { isBranchName, readBranch, setBranch } from './branches.ts'
import { commitFiles, type FileContent } from './commit-files.ts'
import { byActor } from './control-accounts.ts'
import { requireRepository } from './find-repository.ts'
import { recordEvent, touch } from './issue-events.ts'
import { closeIssue } from './issues.ts'
import { pinOids } from './pull-commits.ts'
import { refused } from './refused.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import type { Issue, Repository } from './state.ts'

/**
 * Makes a commit on a branch, as a push by `author` would. A branch that is not there yet starts from
 * `from`, or from the default branch. With `isForced` an existing one starts there too and loses its commits.
 */
export async function pushCommit(
  context: ServerContext,
  order: Readonly<{
    repo: string
    branch: string
    files: Readonly<Record<string, FileContent>>
    message?: string
    author?: string
    from?: string
    isForced?: boolean
  }>,
): Promise<Readonly<{ oid: string }>> {
  const repository = requireRepository(context.state, order.repo)
  if (!isBranchName(order.branch)) throw refused(`"${order.branch}" is no branch name`)
  const path = gitPathOf(context, repository)
  const tip = order.isForced === true ? null : readBranch(path, order.branch)
  const { account, now } = byActor(context, order.author)
  const oid = await commitFiles(path, {
    branch: order.branch,
    parent: tip ?? readBranch(path, order.from ?? repository.defaultBranch),
    message: order.message ?? 'Change files',
    author: identityOf(account),
    dateSeconds: Math.floor(now / 1000),
    files: order.files,
  })
  repository.updatedAt = now
  for (const pull of openPullsFrom(context, repository, order.branch)) touch(pull.issue, now)
  return { oid }
}

/** Open pull requests from a branch are closed with it. */
export async function deleteBranch(
  context: ServerContext,
  order: Readonly<{ repo: string; branch: string; actor?: string }>,
): Promise<void> {
  const repository = requireRepository(context.state, order.repo)
  const path = gitPathOf(context, repository)
  if (readBranch(path, order.branch) === null) throw refused(`there is no branch ${order.branch}`)
  const by = byActor(context, order.actor)
  const pulls = openPullsFrom(context, repository, order.branch)
  for (const { base, issue } of pulls) pinOids(context, base, issue)
  await setBranch(path, order.branch, null)
  for (const { issue } of pulls) {
    recordEvent(context.state, issue, 'head_ref_deleted', by)
    closeIssue(context.state, issue, by)
  }
}

function openPullsFrom(
  context: ServerContext,
  repository: Repository,
  branch: string,
): readonly Readonly<{ base: Repository; issue: Issue }>[] {
  const isFrom = ({ state, pull }: Issue): boolean =>
    state === 'open' && pull?.headRepositoryId === repository.id && pull.headBranch === branch
  return context.state.repositories.flatMap((base) =>
    base.issues.filter(isFrom).map((issue) => ({ base, issue })),
  )
}
