// The endpoints of comments.

import { mayAct } from './access.ts'
import { type ApiRequest, byViewer } from './api-request.ts'
import {
  addComment,
  deleteComment,
  editComment,
  findComment,
  type PlacedComment,
} from './comments.ts'
import type { IssueEndpoint, RepositoryEndpoint } from './endpoint.ts'
import { listReply } from './list-pages.ts'
import { created, invalid, noContent, notAccessible, notFound, ok, type Reply } from './replies.ts'
import { commentProblems, fieldsOf, textField } from './request-fields.ts'
import { restComment } from './rest-comment.ts'
import type { ServerContext } from './server-context.ts'
import type { Repository } from './state.ts'
import { visibleIn } from './test-read-lag.ts'
import { parseSince, seconds } from './times.ts'

export const listComments: IssueEndpoint = (context, request, repository, issue) => {
  const since = parseSince(request.query.get('since') ?? '')
  const listed = issue.comments.filter(
    ({ updatedAt }) => since === null || seconds(updatedAt) >= since,
  )
  const visible = visibleIn(context.lag, listed, request.now)
  return listReply(request, visible, (comment) => restComment(context, repository, issue, comment))
}

export const createComment: IssueEndpoint = (context, request, repository, issue) => {
  const fields = fieldsOf(request.body)
  const problems = commentProblems(fields)
  if (problems.length > 0) return invalid(...problems)
  const text = textField(fields, 'body') ?? ''
  const comment = addComment(context.state, repository, issue, text, byViewer(request))
  const shown = restComment(context, repository, issue, comment)
  return created(shown, shown.url)
}

export const getComment: RepositoryEndpoint = (context, request, repository) => {
  return withComment(request, repository, ({ issue, comment }) =>
    ok(restComment(context, repository, issue, comment)),
  )
}

export const updateComment: RepositoryEndpoint = (context, request, repository) => {
  return withComment(request, repository, (placed) => {
    if (!mayChange(context, request, repository, placed)) return notAccessible('issues=write')
    const fields = fieldsOf(request.body)
    const problems = commentProblems(fields)
    if (problems.length > 0) return invalid(...problems)
    editComment(placed, textField(fields, 'body') ?? '', request.now)
    return ok(restComment(context, repository, placed.issue, placed.comment))
  })
}

export const removeComment: RepositoryEndpoint = (context, request, repository) => {
  return withComment(request, repository, (placed) => {
    if (!mayChange(context, request, repository, placed)) return notAccessible('issues=write')
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
  context: ServerContext,
  request: ApiRequest,
  repository: Repository,
  { comment }: PlacedComment,
): boolean {
  return comment.authorId === request.viewerId || mayAct(context, request, repository, 'write')
}
