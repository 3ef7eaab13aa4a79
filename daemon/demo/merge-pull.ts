import { readCommits } from './commit-facts.ts'
import { git } from './git-command.ts'
import { compareInRepository, gitPathOf, type Hub } from './hub.ts'
import { closedIssues, type Reference } from './issue-references.ts'
import { closeIssue } from './issues.ts'
import { freezeOids } from './pulls.ts'
import { findIssue, findRepository, repositoryById } from './repositories.ts'
import { recordEvent } from './timeline.ts'
import type { Account, Issue, Pull, Repository } from './world.ts'

export type MergeMethod = 'merge' | 'squash'

export type MergeOutcome =
  | Readonly<{ kind: 'merged'; oid: string }>
  | Readonly<{ kind: 'refused'; reason: string }>

/**
 * Merges a pull request as GitHub does when a human presses the button: a real commit on the base branch,
 * and the issues that its body or its commits promise to close are closed by the merger (GitHub docs,
 * "Linking a pull request to an issue": only into the default branch). Faults: git/failed.
 */
export async function mergePull(
  hub: Hub,
  repository: Repository,
  issue: Issue,
  merge: Readonly<{ actor: Account; method: MergeMethod }>,
): Promise<MergeOutcome> {
  const { pull } = issue
  if (pull === null) return { kind: 'refused', reason: 'it is not a pull request' }
  if (issue.state !== 'open') return { kind: 'refused', reason: 'it is not open' }
  freezeOids(hub, repository, issue)
  const comparison = await compareInRepository(hub, repository, pull.baseOid, pull.headOid)
  if (comparison.mergedTree === null) return { kind: 'refused', reason: 'it conflicts' }
  const oid = await writeMerge(hub, repository, issue, pull, {
    ...merge,
    treeOid: comparison.mergedTree,
  })
  const messages = await readCommits(gitPathOf(hub, repository), comparison.commits)

  const now = hub.clock.now()
  const by = { actorId: merge.actor.id, now }
  pull.mergedAt = now
  pull.mergedById = merge.actor.id
  pull.mergeCommitOid = oid
  recordEvent(hub.world, issue, 'merged', by, { commitOid: oid })
  closeIssue(hub.world, issue, by)
  if (pull.baseBranch === repository.defaultBranch) {
    closeNamed(hub, closedIssues(issue.body ?? '', repository), null, by)
    for (const { oid: commitOid, message } of messages) {
      closeNamed(hub, closedIssues(message, repository), commitOid, by)
    }
  }
  return { kind: 'merged', oid }
}

function closeNamed(
  hub: Hub,
  references: readonly Reference[],
  commitOid: string | null,
  by: Readonly<{ actorId: number; now: number }>,
): void {
  for (const { owner, name, number } of references) {
    const repository = findRepository(hub.world, owner, name)
    const issue = repository === null ? null : findIssue(repository, number)
    if (issue !== null && issue.pull === null) closeIssue(hub.world, issue, by, { commitOid })
  }
}

async function writeMerge(
  hub: Hub,
  repository: Repository,
  issue: Issue,
  pull: Pull,
  merge: Readonly<{ actor: Account; method: MergeMethod; treeOid: string }>,
): Promise<string> {
  const path = gitPathOf(hub, repository)
  const parents = merge.method === 'merge' ? [pull.baseOid, pull.headOid] : [pull.baseOid]
  const { name, email } = identityOf(merge.actor)
  const date = `${Math.floor(hub.clock.now() / 1000)} +0000`
  const oid = await git(
    path,
    ['commit-tree', '-F', '-', ...parents.flatMap((parent) => ['-p', parent]), merge.treeOid],
    {
      input: messageOf(hub, repository, issue, pull, merge.method),
      env: {
        GIT_AUTHOR_NAME: name,
        GIT_AUTHOR_EMAIL: email,
        GIT_AUTHOR_DATE: date,
        GIT_COMMITTER_NAME: name,
        GIT_COMMITTER_EMAIL: email,
        GIT_COMMITTER_DATE: date,
      },
    },
  )
  await git(path, ['update-ref', `refs/heads/${pull.baseBranch}`, oid.trim(), pull.baseOid])
  return oid.trim()
}

function messageOf(
  hub: Hub,
  repository: Repository,
  issue: Issue,
  pull: Pull,
  method: MergeMethod,
): string {
  if (method === 'squash') return `${issue.title} (#${issue.number})\n`
  const head = repositoryById(hub.world, pull.headRepositoryId) ?? repository
  return `Merge pull request #${issue.number} from ${head.owner}/${pull.headBranch}\n\n${issue.title}\n`
}

/** How an account signs its commits. */
export function identityOf(account: Account): Readonly<{ name: string; email: string }> {
  const { login, id } = account
  return { name: login, email: `${id}+${login}@users.noreply.github.com` }
}
