import { readBranch } from './branches.ts'
import { openIssue } from './issues.ts'
import { compareInRepository } from './pull-commits.ts'
import type { FieldProblem } from './replies.ts'
import { git } from './run-git.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import type { By, Issue, Pull, PullIssue, Repository } from './state.ts'

export type PullOrder = Readonly<{
  title: string
  body: string | null
  /** `branch`, or `owner:branch` of this repository or of a fork. */
  head: string
  base: string
  isDraft?: boolean
}>

type PullOutcome =
  | Readonly<{ kind: 'created'; issue: PullIssue }>
  | Readonly<{ kind: 'invalid'; problems: readonly FieldProblem[] }>

/** Opens a pull request if GitHub would. Faults: git/failed. */
export async function openPull(
  context: ServerContext,
  repository: Repository,
  order: PullOrder,
  by: By,
): Promise<PullOutcome> {
  const head = resolveHead(context, repository, order.head)
  const headOid =
    head === null ? null : readBranch(gitPathOf(context, head.repository), head.branch)
  const baseOid = readBranch(gitPathOf(context, repository), order.base)
  if (baseOid === null) return problem({ field: 'base', code: 'invalid' })
  if (head === null || headOid === null) return problem({ field: 'head', code: 'invalid' })
  if (findOpenPull(repository, head, order.base) !== null) {
    const label = `${head.repository.owner}:${head.branch}`
    return problem({ code: 'custom', message: `A pull request already exists for ${label}.` })
  }
  if (head.repository !== repository) {
    const from = gitPathOf(context, head.repository)
    await fetchPullHead(gitPathOf(context, repository), from, head.branch, repository.nextNumber)
  }
  const { commits } = await compareInRepository(context, repository, baseOid, headOid)
  if (commits.length === 0) {
    const message = `No commits between ${order.base} and ${order.head}`
    return problem({ code: 'custom', message })
  }
  const pull: Pull = {
    headRepositoryId: head.repository.id,
    headBranch: head.branch,
    baseBranch: order.base,
    headOid,
    baseOid,
    isDraft: order.isDraft ?? false,
    mergedAt: null,
    mergedById: null,
    mergeCommitOid: null,
  }
  const { title, body } = order
  const issue = openIssue(context.state, repository, { title, body, pull }, by)
  return { kind: 'created', issue: Object.assign(issue, { pull }) }
}

const problem = (details: Omit<FieldProblem, 'resource'>): PullOutcome => ({
  kind: 'invalid',
  problems: [{ resource: 'PullRequest', ...details }],
})

type Head = Readonly<{ repository: Repository; branch: string }>

/** null = the owner has no fork of it. */
function resolveHead(context: ServerContext, repository: Repository, text: string): Head | null {
  const colon = text.indexOf(':')
  if (colon < 0) return { repository, branch: text }
  const owner = text.slice(0, colon).toLowerCase()
  const branch = text.slice(colon + 1)
  if (owner === repository.owner.toLowerCase()) return { repository, branch }
  const fork = context.state.repositories.find((candidate) => {
    return candidate.forkOf === repository.id && candidate.owner.toLowerCase() === owner
  })
  return fork === undefined ? null : { repository: fork, branch }
}

function findOpenPull(repository: Repository, head: Head, base: string): Issue | null {
  const found = repository.issues.find(
    ({ state, pull }) =>
      state === 'open' &&
      pull !== null &&
      pull.headRepositoryId === head.repository.id &&
      pull.headBranch === head.branch &&
      pull.baseBranch === base,
  )
  return found ?? null
}

/** Makes sure a commit of a fork is in this repository too, as GitHub's `refs/pull/<n>/head`. Faults: git/failed. */
async function fetchPullHead(
  path: string,
  from: string,
  branch: string,
  number: number,
): Promise<void> {
  const refs = `+refs/heads/${branch}:refs/pull/${number}/head`
  await git(path, ['fetch', '--quiet', '--no-write-fetch-head', '--', from, refs])
}
