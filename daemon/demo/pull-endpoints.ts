import { mayAct } from './access.ts'
import { type ApiRequest, byViewer } from './api-request.ts'
import { readCommits } from './commit-facts.ts'
import { compareInRepository, gitPathOf, type Hub } from './hub.ts'
import { changeIssue, stateProblems } from './issue-endpoints.ts'
import { hasWantedState, inOrder, listingProblems } from './listing-order.ts'
import { listReply } from './pagination.ts'
import { openPull, pullOids } from './pulls.ts'
import { created, invalid, notAccessible, notAllowed, ok, type Reply } from './replies.ts'
import { repositoryById } from './repositories.ts'
import { bodyProblems, fieldsOf, textField, textProblems, titleProblems } from './request-fields.ts'
import { restCommit, restFile } from './rest-commit.ts'
import { restPull, restSimplePull } from './rest-pull.ts'
import { visibleIn } from './visibility-lag.ts'
import { isPull, type Pull, type PullIssue, type Repository } from './world.ts'

/** A `head` that is not `owner:branch` is no filter at all, as on GitHub. */
export function listPulls(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  const { query } = request
  const problems = listingProblems('PullRequest', query)
  if (problems.length > 0) return invalid(...problems)
  const base = query.get('base')
  const matching = repository.issues
    .filter(isPull)
    .filter(
      (issue) =>
        issue.departure === null &&
        hasWantedState(issue, query) &&
        (base === null || base === issue.pull.baseBranch) &&
        isFrom(hub, issue.pull, query.get('head') ?? ''),
    )
  const isByCreation = (query.get('sort') ?? 'created') === 'created'
  const ordered = inOrder(matching, query, isByCreation ? 'desc' : 'asc').filter(isPull)
  const visible = visibleIn(hub.lag, ordered, request.now)
  return listReply(request, visible, (issue) =>
    restSimplePull(hub, repository, issue, request.viewerId),
  )
}

function isFrom(hub: Hub, pull: Pull, head: string): boolean {
  const colon = head.indexOf(':')
  if (colon < 0) return true
  const owner = repositoryById(hub.world, pull.headRepositoryId)?.owner.toLowerCase()
  return owner === head.slice(0, colon).toLowerCase() && pull.headBranch === head.slice(colon + 1)
}

export async function createPull(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
): Promise<Reply> {
  const fields = fieldsOf(request.body)
  const problems = [
    ...textProblems('PullRequest', fields, ['title', 'body', 'head', 'base']),
    ...titleProblems('PullRequest', fields, true),
    ...bodyProblems(fields),
    ...['head', 'base']
      .filter((field) => (textField(fields, field) ?? '') === '')
      .map((field) => ({ resource: 'PullRequest', field, code: 'missing_field' })),
  ]
  if (problems.length > 0) return invalid(...problems)
  const outcome = await openPull(
    hub,
    repository,
    {
      title: textField(fields, 'title') ?? '',
      body: textField(fields, 'body'),
      head: textField(fields, 'head') ?? '',
      base: textField(fields, 'base') ?? '',
      isDraft: fields['draft'] === true,
    },
    byViewer(request),
  )
  if (outcome.kind === 'invalid') return invalid(...outcome.problems)
  const { comparison } = await comparePull(hub, repository, outcome.issue)
  const shown = restPull(hub, repository, outcome.issue, comparison, request.viewerId)
  return created(shown, shown.url)
}

export async function getPull(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: PullIssue,
): Promise<Reply> {
  const { comparison } = await comparePull(hub, repository, issue)
  return ok(restPull(hub, repository, issue, comparison, request.viewerId))
}

/** Title, body and state; anything else of a pull request stays. */
export async function updatePull(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: PullIssue,
): Promise<Reply> {
  const mayChange = mayAct(hub, request, repository, 'write') || issue.authorId === request.viewerId
  if (!mayChange) return notAccessible('pull_requests=write')
  const { title, body, state } = fieldsOf(request.body)
  const fields = Object.fromEntries(
    Object.entries({ title, body, state }).filter(([, value]) => value !== undefined),
  )
  const problems = [
    ...textProblems('PullRequest', fields, ['title', 'body', 'state']),
    ...titleProblems('PullRequest', fields, false),
    ...bodyProblems(fields),
    ...stateProblems(fields),
  ]
  if (problems.length > 0) return invalid(...problems)
  changeIssue(hub, request, repository, issue, fields)
  return getPull(hub, request, repository, issue)
}

/** Merging belongs to humans, who do it by the control interface; that somebody asked is in the request log. */
export function refuseMerge(): Reply {
  return notAllowed('Pull Request is not mergeable')
}

export async function listFiles(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: PullIssue,
): Promise<Reply> {
  const { comparison, headOid } = await comparePull(hub, repository, issue)
  return listReply(request, comparison.files, (file) => restFile(hub, repository, headOid, file))
}

export async function listCommits(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: PullIssue,
): Promise<Reply> {
  const { comparison } = await comparePull(hub, repository, issue)
  const commits = await readCommits(gitPathOf(hub, repository), comparison.commits)
  return listReply(request, commits, (commit) => restCommit(hub, repository, commit))
}

async function comparePull(hub: Hub, repository: Repository, issue: PullIssue) {
  const { headOid, baseOid } = pullOids(hub, repository, issue)
  const comparison = await compareInRepository(hub, repository, baseOid, headOid)
  return { headOid, comparison }
}
