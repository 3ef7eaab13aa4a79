// Which commits a pull request is about, and what they amount to.

import { readBranch } from './branches.ts'
import { type Comparison, compareCommits } from './compare-commits.ts'
import { repositoryById } from './find-repository.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import { type Issue, isPull, type PullIssue, type Repository } from './state.ts'

const MAX_COMPARISONS = 1000

/** As `compareCommits`, remembered. Faults: git/failed. */
export async function compareInRepository(
  context: ServerContext,
  repository: Repository,
  baseOid: string,
  headOid: string,
): Promise<Comparison> {
  const key = `${repository.id} ${baseOid} ${headOid}`
  const known = context.comparisons.get(key)
  if (known !== undefined) return known
  const comparison = await compareCommits(gitPathOf(context, repository), baseOid, headOid)
  if (context.comparisons.size >= MAX_COMPARISONS) context.comparisons.clear()
  context.comparisons.set(key, comparison)
  return comparison
}

/** The commits a pull request is about: of an open one those its branches point to now. */
export function pullOids(
  context: ServerContext,
  repository: Repository,
  issue: PullIssue,
): Readonly<{ headOid: string; baseOid: string }> {
  const { pull } = issue
  const { headOid, baseOid } = pull
  if (issue.state !== 'open') return { headOid, baseOid }
  const head = repositoryById(context.state, pull.headRepositoryId) ?? repository
  return {
    headOid: readBranch(gitPathOf(context, head), pull.headBranch) ?? headOid,
    baseOid: readBranch(gitPathOf(context, repository), pull.baseBranch) ?? baseOid,
  }
}

/** What a pull request amounts to now. Faults: git/failed. */
export async function comparePull(
  context: ServerContext,
  repository: Repository,
  issue: PullIssue,
): Promise<Readonly<{ headOid: string; comparison: Comparison }>> {
  const { headOid, baseOid } = pullOids(context, repository, issue)
  const comparison = await compareInRepository(context, repository, baseOid, headOid)
  return { headOid, comparison }
}

/** Keeps the commits of a pull request that is about to be closed or merged. */
export function pinOids(context: ServerContext, repository: Repository, issue: Issue): void {
  if (isPull(issue)) Object.assign(issue.pull, pullOids(context, repository, issue))
}
