// The endpoints of pull requests.

import { mayAct } from './access.ts'
import { byViewer } from './api-request.ts'
import type { PullEndpoint, RepositoryEndpoint } from './endpoint.ts'
import { repositoryById } from './find-repository.ts'
import { changeIssue } from './issue-endpoints.ts'
import { inOrder, listingProblems, matchesState } from './list-order.ts'
import { listReply } from './list-pages.ts'
import { openPull } from './open-pull.ts'
import { comparePull } from './pull-commits.ts'
import { readCommits } from './read-commits.ts'
import { created, invalid, notAccessible, notAllowed, ok, type Reply } from './replies.ts'
import {
  bodyProblems,
  fieldsOf,
  stateProblems,
  textField,
  textProblems,
  titleProblems,
} from './request-fields.ts'
import { restCommit, restFile } from './rest-commit.ts'
import { restPull, restSimplePull } from './rest-pull.ts'
import { gitPathOf, type ServerContext } from './server-context.ts'
import { isPull, type Pull } from './state.ts'
import { visibleIn } from './test-read-lag.ts'

/** A `head` that is not `owner:branch` is no filter at all, as on GitHub. */
export const listPulls: RepositoryEndpoint = (context, request, repository) => {
  const { query } = request
  const problems = listingProblems('PullRequest', query)
  if (problems.length > 0) return invalid(...problems)
  const base = query.get('base')
  const matching = repository.issues
    .filter(isPull)
    .filter(
      (issue) =>
        issue.departure === null &&
        matchesState(issue, query) &&
        (base === null || base === issue.pull.baseBranch) &&
        isFrom(context, issue.pull, query.get('head') ?? ''),
    )
  const isByCreation = (query.get('sort') ?? 'created') === 'created'
  const ordered = inOrder(matching, query, isByCreation ? 'desc' : 'asc').filter(isPull)
  const visible = visibleIn(context.lag, ordered, request.now)
  return listReply(request, visible, (issue) =>
    restSimplePull(context, repository, issue, request.viewerId),
  )
}

function isFrom(context: ServerContext, pull: Pull, head: string): boolean {
  const colon = head.indexOf(':')
  if (colon < 0) return true
  const owner = repositoryById(context.state, pull.headRepositoryId)?.owner.toLowerCase()
  return owner === head.slice(0, colon).toLowerCase() && pull.headBranch === head.slice(colon + 1)
}

export const createPull: RepositoryEndpoint = async (context, request, repository) => {
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
    context,
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
  const { comparison } = await comparePull(context, repository, outcome.issue)
  const shown = restPull(context, repository, outcome.issue, comparison, request.viewerId)
  return created(shown, shown.url)
}

export const getPull: PullEndpoint = async (context, request, repository, issue) => {
  const { comparison } = await comparePull(context, repository, issue)
  return ok(restPull(context, repository, issue, comparison, request.viewerId))
}

/** Title, body and state; anything else of a pull request stays. */
export const updatePull: PullEndpoint = async (context, request, repository, issue) => {
  const mayChange =
    mayAct(context, request, repository, 'write') || issue.authorId === request.viewerId
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
  changeIssue(context, request, repository, issue, fields)
  return getPull(context, request, repository, issue)
}

/** Merging belongs to humans, who do it by the control interface; the request log shows that it was asked for. */
export function refuseMerge(): Reply {
  return notAllowed('Pull Request is not mergeable')
}

export const listFiles: PullEndpoint = async (context, request, repository, issue) => {
  const { comparison, headOid } = await comparePull(context, repository, issue)
  return listReply(request, comparison.files, (file) =>
    restFile(context, repository, headOid, file),
  )
}

export const listCommits: PullEndpoint = async (context, request, repository, issue) => {
  const { comparison } = await comparePull(context, repository, issue)
  const commits = await readCommits(gitPathOf(context, repository), comparison.commits)
  return listReply(request, commits, (commit) => restCommit(context, repository, commit))
}
