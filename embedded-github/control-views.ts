// What operators read of issues and pull requests.

import { accountById } from './accounts.ts'
import { find, type Target } from './control-issues.ts'
import { requireRepository } from './find-repository.ts'
import { labelsOf } from './labels.ts'
import { pullOids } from './pull-commits.ts'
import type { ServerContext } from './server-context.ts'
import { isPull } from './state.ts'

/** Everything about one issue or pull request; times in milliseconds since the epoch. */
export function readIssue(context: ServerContext, order: Target) {
  const { repository, issue } = find(context, order)
  const login = (id: number | null) => accountById(context.state, id)?.login ?? null
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
          ...pullOids(context, repository, issue),
          isMerged: issue.pull.mergedAt !== null,
          mergedBy: login(issue.pull.mergedById),
          mergeCommitOid: issue.pull.mergeCommitOid,
        }
      : null,
  }
}

/** All issues and pull requests of a repository, by rising number. */
export function listIssues(context: ServerContext, { repo }: Readonly<{ repo: string }>) {
  const { issues } = requireRepository(context.state, repo)
  return issues.map(({ number }) => readIssue(context, { repo, number }))
}
