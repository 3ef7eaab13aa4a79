import { fetchPullHead, readBranch } from './bare-repository.ts'
import { compareInRepository, gitPathOf, type Hub } from './hub.ts'
import { openIssue } from './issues.ts'
import type { Problem } from './replies.ts'
import { repositoryById } from './repositories.ts'
import { type Issue, isPull, type Pull, type PullIssue, type Repository } from './world.ts'

export type PullOrder = Readonly<{
  title: string
  body: string | null
  /** `branch`, or `owner:branch` of this repository or of a fork. */
  head: string
  base: string
  isDraft?: boolean
}>

export type PullOutcome =
  | Readonly<{ kind: 'created'; issue: PullIssue }>
  | Readonly<{ kind: 'invalid'; problems: readonly Problem[] }>

/** Opens a pull request if GitHub would. Faults: git/failed. */
export async function openPull(
  hub: Hub,
  repository: Repository,
  order: PullOrder,
  by: Readonly<{ actorId: number | null; now: number }>,
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

const problem = (details: Omit<Problem, 'resource'>): PullOutcome => ({
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

/** Keeps the commits of a pull request that is about to be closed or merged. */
export function freezeOids(hub: Hub, repository: Repository, issue: Issue): void {
  if (isPull(issue)) Object.assign(issue.pull, pullOids(hub, repository, issue))
}
