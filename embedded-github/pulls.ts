// Opening, comparing and merging pull requests, with real commits.

import type { FieldProblem } from './api-messages.ts'
import { type Comparison, git, readCommits } from './git-commits.ts'
import { compareInRepository, gitPathOf, type Hub } from './hub.ts'
import { closeIssue, openIssue, recordEvent } from './issues.ts'
import {
  closedIssues,
  findIssue,
  findRepository,
  type Reference,
  readBranch,
  repositoryById,
} from './repositories.ts'
import {
  type Account,
  type By,
  type Issue,
  isPull,
  type Pull,
  type PullIssue,
  type Repository,
} from './world.ts'

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
  hub: Hub,
  repository: Repository,
  order: PullOrder,
  by: By,
): Promise<PullOutcome> {
  const head = resolveHead(hub, repository, order.head)
  const headOid = head === null ? null : readBranch(gitPathOf(hub, head.repository), head.branch)
  const baseOid = readBranch(gitPathOf(hub, repository), order.base)
  if (baseOid === null) return problem({ field: 'base', code: 'invalid' })
  if (head === null || headOid === null) return problem({ field: 'head', code: 'invalid' })
  if (findOpenPull(repository, head, order.base) !== null) {
    const label = `${head.repository.owner}:${head.branch}`
    return problem({ code: 'custom', message: `A pull request already exists for ${label}.` })
  }
  if (head.repository !== repository) {
    const from = gitPathOf(hub, head.repository)
    await fetchPullHead(gitPathOf(hub, repository), from, head.branch, repository.nextNumber)
  }
  const { commits } = await compareInRepository(hub, repository, baseOid, headOid)
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
  const issue = openIssue(hub.world, repository, { title, body, pull }, by)
  return { kind: 'created', issue: Object.assign(issue, { pull }) }
}

const problem = (details: Omit<FieldProblem, 'resource'>): PullOutcome => ({
  kind: 'invalid',
  problems: [{ resource: 'PullRequest', ...details }],
})

type Head = Readonly<{ repository: Repository; branch: string }>

/** null = the owner has no fork of it. */
function resolveHead(hub: Hub, repository: Repository, text: string): Head | null {
  const colon = text.indexOf(':')
  if (colon < 0) return { repository, branch: text }
  const owner = text.slice(0, colon).toLowerCase()
  const branch = text.slice(colon + 1)
  if (owner === repository.owner.toLowerCase()) return { repository, branch }
  const fork = hub.world.repositories.find((candidate) => {
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

/** The commits a pull request is about: of an open one those its branches point to now. */
export function pullOids(
  hub: Hub,
  repository: Repository,
  issue: PullIssue,
): Readonly<{ headOid: string; baseOid: string }> {
  const { pull } = issue
  const { headOid, baseOid } = pull
  if (issue.state !== 'open') return { headOid, baseOid }
  const head = repositoryById(hub.world, pull.headRepositoryId) ?? repository
  return {
    headOid: readBranch(gitPathOf(hub, head), pull.headBranch) ?? headOid,
    baseOid: readBranch(gitPathOf(hub, repository), pull.baseBranch) ?? baseOid,
  }
}

/** What a pull request amounts to now. Faults: git/failed. */
export async function comparePull(
  hub: Hub,
  repository: Repository,
  issue: PullIssue,
): Promise<Readonly<{ headOid: string; comparison: Comparison }>> {
  const { headOid, baseOid } = pullOids(hub, repository, issue)
  const comparison = await compareInRepository(hub, repository, baseOid, headOid)
  return { headOid, comparison }
}

/** Keeps the commits of a pull request that is about to be closed or merged. */
export function pinOids(hub: Hub, repository: Repository, issue: Issue): void {
  if (isPull(issue)) Object.assign(issue.pull, pullOids(hub, repository, issue))
}

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
  hub: Hub,
  repository: Repository,
  issue: Issue,
  merge: Readonly<{ actor: Account; method: MergeMethod }>,
): Promise<MergeOutcome> {
  const { pull } = issue
  if (pull === null) return { kind: 'refused', reason: 'it is not a pull request' }
  if (issue.state !== 'open') return { kind: 'refused', reason: 'it is not open' }
  pinOids(hub, repository, issue)
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
  by: By,
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
