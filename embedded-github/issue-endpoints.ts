// The endpoints of issues.

import { mayAct } from './access.ts'
import { type ApiRequest, byViewer } from './api-request.ts'
import type { IssueEndpoint, RepositoryEndpoint } from './endpoint.ts'
import { closeIssue, editIssue, openIssue, reopenIssue } from './issues.ts'
import { labelsOf, setLabels } from './labels.ts'
import { inOrder, listingProblems, matchesState } from './list-order.ts'
import { listReply } from './list-pages.ts'
import { pinOids } from './pull-commits.ts'
import { created, gone, invalid, notAccessible, ok } from './replies.ts'
import {
  bodyProblems,
  closingReason,
  type Fields,
  fieldsOf,
  labelNames,
  stateProblems,
  textField,
  textProblems,
  titleProblems,
} from './request-fields.ts'
import { issueUrl, restIssue } from './rest-issue.ts'
import type { ServerContext } from './server-context.ts'
import type { Issue, Repository } from './state.ts'
import { visibleIn } from './test-read-lag.ts'
import { parseSince, seconds } from './times.ts'

/** Issues and pull requests; all labels of the filter have to be there. */
export const listIssues: RepositoryEndpoint = (context, request, repository) => {
  if (!repository.hasIssues) return gone('Issues has been disabled in this repository.')
  const { query } = request
  const problems = listingProblems('Issue', query)
  if (problems.length > 0) return invalid(...problems)
  const required = (query.get('labels') ?? '').split(',').filter((name) => name.trim() !== '')
  const since = parseSince(query.get('since') ?? '')
  const creator = query.get('creator')?.toLowerCase() ?? null
  const matching = repository.issues.filter(
    (issue) =>
      issue.departure === null &&
      matchesState(issue, query) &&
      (since === null || seconds(issue.updatedAt) >= since) &&
      (creator === null || loginOf(context, issue) === creator) &&
      hasLabels(repository, issue, required),
  )
  const visible = visibleIn(context.lag, inOrder(matching, query), request.now)
  return listReply(request, visible, (issue) => restIssue(context, repository, issue))
}

function hasLabels(repository: Repository, issue: Issue, required: readonly string[]): boolean {
  if (required.length === 0) return true
  const names = labelsOf(repository, issue).map(({ name }) => name.toLowerCase())
  return required.every((name) => names.includes(name.trim().toLowerCase()))
}

function loginOf(context: ServerContext, issue: Issue): string | undefined {
  return context.state.accounts.find(({ id }) => id === issue.authorId)?.login.toLowerCase()
}

export const createIssue: RepositoryEndpoint = (context, request, repository) => {
  if (!repository.hasIssues) return gone('Issues has been disabled in this repository.')
  const fields = fieldsOf(request.body)
  const problems = [
    ...textProblems('Issue', fields, ['title', 'body']),
    ...titleProblems('Issue', fields, true),
    ...bodyProblems(fields),
  ]
  if (problems.length > 0) return invalid(...problems)
  // GitHub drops labels from those who may not label.
  const mayLabel = mayAct(context, request, repository, 'triage')
  const issue = openIssue(
    context.state,
    repository,
    {
      title: textField(fields, 'title') ?? '',
      body: textField(fields, 'body'),
      labels: mayLabel ? (labelNames(fields['labels']) ?? []) : [],
    },
    byViewer(request),
  )
  return created(restIssue(context, repository, issue), issueUrl(context, repository, issue))
}

export const getIssue: IssueEndpoint = (context, _, repository, issue) => {
  return ok(restIssue(context, repository, issue))
}

/** Also closes and reopens pull requests. */
export const updateIssue: IssueEndpoint = (context, request, repository, issue) => {
  const mayChange =
    mayAct(context, request, repository, 'triage') || issue.authorId === request.viewerId
  if (!mayChange) return notAccessible('issues=write')
  const fields = fieldsOf(request.body)
  const problems = [
    ...textProblems('Issue', fields, ['title', 'body', 'state', 'state_reason']),
    ...titleProblems('Issue', fields, false),
    ...bodyProblems(fields),
    ...stateProblems(fields),
  ]
  if (problems.length > 0) return invalid(...problems)
  changeIssue(context, request, repository, issue, fields)
  return ok(restIssue(context, repository, issue))
}

/** Carries out what PATCH asks for, on issues and pull requests; the fields are checked. */
export function changeIssue(
  context: ServerContext,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
  fields: Fields,
): void {
  const by = byViewer(request)
  const title = textField(fields, 'title')
  editIssue(
    context.state,
    repository,
    issue,
    {
      ...(title === null ? {} : { title }),
      ...('body' in fields ? { body: textField(fields, 'body') } : {}),
    },
    by,
  )
  const labels = labelNames(fields['labels'])
  if (labels !== null) setLabels(context.state, repository, issue, labels, by)
  const state = textField(fields, 'state')
  if (state === 'closed') {
    pinOids(context, repository, issue)
    closeIssue(context.state, issue, by, { reason: closingReason(fields) })
  }
  if (state === 'open') reopenIssue(context.state, issue, by)
}
