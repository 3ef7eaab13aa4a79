import { mayAct } from './access.ts'
import { type ApiRequest, byViewer } from './api-request.ts'
import { parseSince, seconds } from './github-time.ts'
import type { Hub } from './hub.ts'
import { closeIssue, editIssue, openIssue, reopenIssue } from './issues.ts'
import { addLabels, labelsOf, removeLabel } from './labels.ts'
import { hasWantedState, inOrder, listingProblems } from './listing-order.ts'
import { listReply } from './pagination.ts'
import { freezeOids } from './pulls.ts'
import { created, gone, invalid, notAccessible, ok, type Problem, type Reply } from './replies.ts'
import {
  bodyProblems,
  type Fields,
  fieldsOf,
  labelNames,
  textField,
  textProblems,
  titleProblems,
} from './request-fields.ts'
import { issueUrl, restIssue } from './rest-issue.ts'
import { visibleIn } from './visibility-lag.ts'
import type { Issue, Repository, StateReason } from './world.ts'

/** Issues and pull requests; all labels of the filter have to be there. */
export function listIssues(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  if (!repository.hasIssues) return gone('Issues has been disabled in this repository.')
  const { query } = request
  const problems = listingProblems('Issue', query)
  if (problems.length > 0) return invalid(...problems)
  const wanted = (query.get('labels') ?? '').split(',').filter((name) => name.trim() !== '')
  const since = parseSince(query.get('since') ?? '')
  const creator = query.get('creator')?.toLowerCase() ?? null
  const matching = repository.issues.filter(
    (issue) =>
      issue.departure === null &&
      hasWantedState(issue, query) &&
      (since === null || seconds(issue.updatedAt) >= since) &&
      (creator === null || loginOf(hub, issue) === creator) &&
      hasLabels(repository, issue, wanted),
  )
  const visible = visibleIn(hub.lag, inOrder(matching, query), request.now)
  return listReply(request, visible, (issue) => restIssue(hub, repository, issue))
}

function hasLabels(repository: Repository, issue: Issue, wanted: readonly string[]): boolean {
  if (wanted.length === 0) return true
  const names = labelsOf(repository, issue).map(({ name }) => name.toLowerCase())
  return wanted.every((name) => names.includes(name.trim().toLowerCase()))
}

function loginOf(hub: Hub, issue: Issue): string | undefined {
  return hub.world.accounts.find(({ id }) => id === issue.authorId)?.login.toLowerCase()
}

export function createIssue(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  if (!repository.hasIssues) return gone('Issues has been disabled in this repository.')
  const fields = fieldsOf(request.body)
  const problems = [
    ...textProblems('Issue', fields, ['title', 'body']),
    ...titleProblems('Issue', fields, true),
    ...bodyProblems(fields),
  ]
  if (problems.length > 0) return invalid(...problems)
  // GitHub drops labels from those who may not label.
  const mayLabel = mayAct(hub, request, repository, 'triage')
  const issue = openIssue(
    hub.world,
    repository,
    {
      title: textField(fields, 'title') ?? '',
      body: textField(fields, 'body'),
      labels: mayLabel ? (labelNames(fields['labels']) ?? []) : [],
    },
    byViewer(request),
  )
  return created(restIssue(hub, repository, issue), issueUrl(hub, repository, issue))
}

export function getIssue(hub: Hub, _: ApiRequest, repository: Repository, issue: Issue): Reply {
  return ok(restIssue(hub, repository, issue))
}

/** Also closes and reopens pull requests. */
export function updateIssue(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const mayChange =
    mayAct(hub, request, repository, 'triage') || issue.authorId === request.viewerId
  if (!mayChange) return notAccessible('issues=write')
  const fields = fieldsOf(request.body)
  const problems = [
    ...textProblems('Issue', fields, ['title', 'body', 'state', 'state_reason']),
    ...titleProblems('Issue', fields, false),
    ...bodyProblems(fields),
    ...stateProblems(fields),
  ]
  if (problems.length > 0) return invalid(...problems)
  changeIssue(hub, request, repository, issue, fields)
  return ok(restIssue(hub, repository, issue))
}

/** Carries out what PATCH asks for, on issues and pull requests; the fields are checked. */
export function changeIssue(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
  fields: Fields,
): void {
  const by = byViewer(request)
  const title = textField(fields, 'title')
  editIssue(
    hub.world,
    repository,
    issue,
    {
      ...(title === null ? {} : { title }),
      ...('body' in fields ? { body: textField(fields, 'body') } : {}),
    },
    by,
  )
  setLabels(hub, repository, issue, labelNames(fields['labels']), by)
  const state = textField(fields, 'state')
  if (state === 'closed') {
    freezeOids(hub, repository, issue)
    closeIssue(hub.world, issue, by, { reason: closingReason(fields) })
  }
  if (state === 'open') reopenIssue(hub.world, issue, by)
}

function setLabels(
  hub: Hub,
  repository: Repository,
  issue: Issue,
  names: readonly string[] | null,
  by: ReturnType<typeof byViewer>,
): void {
  if (names === null) return
  const wanted = names.map((name) => name.toLowerCase())
  for (const { name } of labelsOf(repository, issue)) {
    if (!wanted.includes(name.toLowerCase())) removeLabel(hub.world, repository, issue, name, by)
  }
  addLabels(hub.world, repository, issue, names, by)
}

const REASONS = ['completed', 'not_planned', 'duplicate', 'reopened'] as const

export function stateProblems(fields: Fields): readonly Problem[] {
  const state = textField(fields, 'state')
  const reason = textField(fields, 'state_reason')
  const isState = state === null || state === 'open' || state === 'closed'
  const isReason = reason === null || REASONS.some((known) => known === reason)
  return [
    ...(isState ? [] : [{ resource: 'Issue', field: 'state', code: 'invalid' }]),
    ...(isReason ? [] : [{ resource: 'Issue', field: 'state_reason', code: 'invalid' }]),
  ]
}

function closingReason(fields: Fields): StateReason {
  const reason = textField(fields, 'state_reason')
  return REASONS.find((known) => known === reason && known !== 'reopened') ?? 'completed'
}
