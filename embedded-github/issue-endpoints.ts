// The endpoints of issues, their comments and their events.

import { mayAct } from './accounts.ts'
import {
  type ApiRequest,
  bodyProblems,
  byViewer,
  commentProblems,
  created,
  type FieldProblem,
  type Fields,
  fieldsOf,
  gone,
  inOrder,
  invalid,
  labelNames,
  listingProblems,
  listReply,
  matchesState,
  noContent,
  notAccessible,
  notFound,
  ok,
  type Reply,
  textField,
  textProblems,
  titleProblems,
} from './api-messages.ts'
import { type Hub, type IssueEndpoint, type RepositoryEndpoint, visibleIn } from './hub.ts'
import {
  addComment,
  closeIssue,
  deleteComment,
  editComment,
  editIssue,
  findComment,
  labelsOf,
  openIssue,
  type PlacedComment,
  reopenIssue,
  setLabels,
} from './issues.ts'
import { pinOids } from './pulls.ts'
import {
  issueUrl,
  listedEvents,
  restComment,
  restEvent,
  restIssue,
  restTimelineEntry,
  timelineItems,
} from './rest-issue.ts'
import { type Issue, parseSince, type Repository, type StateReason, seconds } from './world.ts'

/** Issues and pull requests; all labels of the filter have to be there. */
export const listIssues: RepositoryEndpoint = (hub, request, repository) => {
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
      matchesState(issue, query) &&
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

export const createIssue: RepositoryEndpoint = (hub, request, repository) => {
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

export const getIssue: IssueEndpoint = (hub, _, repository, issue) => {
  return ok(restIssue(hub, repository, issue))
}

/** Also closes and reopens pull requests. */
export const updateIssue: IssueEndpoint = (hub, request, repository, issue) => {
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
  const labels = labelNames(fields['labels'])
  if (labels !== null) setLabels(hub.world, repository, issue, labels, by)
  const state = textField(fields, 'state')
  if (state === 'closed') {
    pinOids(hub, repository, issue)
    closeIssue(hub.world, issue, by, { reason: closingReason(fields) })
  }
  if (state === 'open') reopenIssue(hub.world, issue, by)
}

const REASONS = ['completed', 'not_planned', 'duplicate', 'reopened'] as const

export function stateProblems(fields: Fields): readonly FieldProblem[] {
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

export const listComments: IssueEndpoint = (hub, request, repository, issue) => {
  const since = parseSince(request.query.get('since') ?? '')
  const wanted = issue.comments.filter(
    ({ updatedAt }) => since === null || seconds(updatedAt) >= since,
  )
  const visible = visibleIn(hub.lag, wanted, request.now)
  return listReply(request, visible, (comment) => restComment(hub, repository, issue, comment))
}

export const createComment: IssueEndpoint = (hub, request, repository, issue) => {
  const fields = fieldsOf(request.body)
  const problems = commentProblems(fields)
  if (problems.length > 0) return invalid(...problems)
  const text = textField(fields, 'body') ?? ''
  const comment = addComment(hub.world, repository, issue, text, byViewer(request))
  const shown = restComment(hub, repository, issue, comment)
  return created(shown, shown.url)
}

export const getComment: RepositoryEndpoint = (hub, request, repository) => {
  return withComment(request, repository, ({ issue, comment }) =>
    ok(restComment(hub, repository, issue, comment)),
  )
}

export const updateComment: RepositoryEndpoint = (hub, request, repository) => {
  return withComment(request, repository, (placed) => {
    if (!mayChange(hub, request, repository, placed)) return notAccessible('issues=write')
    const fields = fieldsOf(request.body)
    const problems = commentProblems(fields)
    if (problems.length > 0) return invalid(...problems)
    editComment(placed, textField(fields, 'body') ?? '', request.now)
    return ok(restComment(hub, repository, placed.issue, placed.comment))
  })
}

export const removeComment: RepositoryEndpoint = (hub, request, repository) => {
  return withComment(request, repository, (placed) => {
    if (!mayChange(hub, request, repository, placed)) return notAccessible('issues=write')
    deleteComment(placed, request.now)
    return noContent()
  })
}

function withComment(
  request: ApiRequest,
  repository: Repository,
  answer: (placed: PlacedComment) => Reply,
): Reply {
  const placed = findComment(repository, Number(request.params['comment_id']))
  return placed === null ? notFound() : answer(placed)
}

/** Its author, or who may write. */
function mayChange(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  { comment }: PlacedComment,
): boolean {
  return comment.authorId === request.viewerId || mayAct(hub, request, repository, 'write')
}

export const listEvents: IssueEndpoint = (hub, request, repository, issue) => {
  const visible = visibleIn(hub.lag, listedEvents(issue), request.now)
  return listReply(request, visible, (event) => restEvent(hub, repository, event))
}

export const listTimeline: IssueEndpoint = (hub, request, repository, issue) => {
  const visible = visibleIn(hub.lag, timelineItems(issue), request.now)
  return listReply(request, visible, (item) => restTimelineEntry(hub, repository, issue, item))
}
