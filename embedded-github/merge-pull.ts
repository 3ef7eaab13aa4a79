import { identityOf } from './accounts.ts'
import { findIssue, findRepository, repositoryById } from './find-repository.ts'
import { recordEvent } from './issue-events.ts'
import { closedIssues, type Reference } from './issue-references.ts'
import { closeIssue } from './issues.ts'
import { compareInRepository, pinOids } from './pull-commits.ts'
import { readCommits } from './read-commits.ts'
import { git } from './run-git.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import type { Account, By, Issue, Pull, Repository } from './state.ts'

export type MergeMethod = 'merge' | 'squash'

type MergeOutcome =
  | Readonly<{ kind: 'merged'; oid: string }>
  | Readonly<{ kind: 'refused'; reason: string }>

/**
 * Merges a pull request as GitHub does when a human presses the button: a real commit on the base branch,
 * and the issues that its body or its commits promise to close are closed by the merger (GitHub docs,
 * "Linking a pull request to an issue": only into the default branch). Faults: git/failed.
 */
export async function mergePull(
  context: ServerContext,
  repository: Repository,
  issue: Issue,
  merge: Readonly<{ actor: Account; method: MergeMethod }>,
): Promise<MergeOutcome> {
  const { pull } = issue
  if (pull === null) return { kind: 'refused', reason: 'it is not a pull request' }
  if (issue.state !== 'open') return { kind: 'refused', reason: 'it is not open' }
  pinOids(context, repository, issue)
  const comparison = await compareInRepository(context, repository, pull.baseOid, pull.headOid)
  if (comparison.mergedTree === null) return { kind: 'refused', reason: 'it conflicts' }
  const oid = await writeMerge(context, repository, issue, pull, {
    ...merge,
    treeOid: comparison.mergedTree,
  })
  const messages = await readCommits(gitPathOf(context, repository), comparison.commits)

  const now = context.clock.now()
  const by = { actorId: merge.actor.id, now }
  pull.mergedAt = now
  pull.mergedById = merge.actor.id
  pull.mergeCommitOid = oid
  recordEvent(context.state, issue, 'merged', by, { commitOid: oid })
  closeIssue(context.state, issue, by)
  if (pull.baseBranch === repository.defaultBranch) {
    closeNamed(context, closedIssues(issue.body ?? '', repository), null, by)
    for (const { oid: commitOid, message } of messages) {
      closeNamed(context, closedIssues(message, repository), commitOid, by)
    }
  }
  return { kind: 'merged', oid }
}

function closeNamed(
  context: ServerContext,
  references: readonly Reference[],
  commitOid: string | null,
  by: By,
): void {
  for (const { owner, name, number } of references) {
    const repository = findRepository(context.state, owner, name)
    const issue = repository === null ? null : findIssue(repository, number)
    if (issue !== null && issue.pull === null) closeIssue(context.state, issue, by, { commitOid })
  }
}

async function writeMerge(
  context: ServerContext,
  repository: Repository,
  issue: Issue,
  pull: Pull,
  merge: Readonly<{ actor: Account; method: MergeMethod; treeOid: string }>,
): Promise<string> {
  const path = gitPathOf(context, repository)
  const parents = merge.method === 'merge' ? [pull.baseOid, pull.headOid] : [pull.baseOid]
  const { name, email } = identityOf(merge.actor)
  const date = `${Math.floor(context.clock.now() / 1000)} +0000`
  const oid = await git(
    path,
    ['commit-tree', '-F', '-', ...parents.flatMap((parent) => ['-p', parent]), merge.treeOid],
    {
      input: messageOf(context, repository, issue, pull, merge.method),
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
  context: ServerContext,
  repository: Repository,
  issue: Issue,
  pull: Pull,
  method: MergeMethod,
): string {
  if (method === 'squash') return `${issue.title} (#${issue.number})\n`
  const head = repositoryById(context.state, pull.headRepositoryId) ?? repository
  return `Merge pull request #${issue.number} from ${head.owner}/${pull.headBranch}\n\n${issue.title}\n`
}
