import { mayAct } from './access.ts'
import { type ApiRequest, byViewer } from './api-request.ts'
import {
  addComment,
  deleteComment,
  editComment,
  findComment,
  type PlacedComment,
} from './comments.ts'
import { parseSince, seconds } from './github-time.ts'
import type { Hub } from './hub.ts'
import { listReply } from './pagination.ts'
import { created, invalid, noContent, notAccessible, notFound, ok, type Reply } from './replies.ts'
import { commentProblems, fieldsOf, textField } from './request-fields.ts'
import { restComment } from './rest-issue.ts'
import { visibleIn } from './visibility-lag.ts'
import type { Issue, Repository } from './world.ts'

export function listComments(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const since = parseSince(request.query.get('since') ?? '')
  const wanted = issue.comments.filter(
    ({ updatedAt }) => since === null || seconds(updatedAt) >= since,
  )
  const visible = visibleIn(hub.lag, wanted, request.now)
  return listReply(request, visible, (comment) => restComment(hub, repository, issue, comment))
}

export function createComment(
  hub: Hub,
  request: ApiRequest,
  repository: Repository,
  issue: Issue,
): Reply {
  const fields = fieldsOf(request.body)
  const problems = commentProblems(fields)
  if (problems.length > 0) return invalid(...problems)
  const text = textField(fields, 'body') ?? ''
  const comment = addComment(hub.world, repository, issue, text, byViewer(request))
  const shown = restComment(hub, repository, issue, comment)
  return created(shown, shown.url)
}

export function getComment(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  return withComment(request, repository, ({ issue, comment }) =>
    ok(restComment(hub, repository, issue, comment)),
  )
}

export function updateComment(hub: Hub, request: ApiRequest, repository: Repository): Reply {
  return withComment(request, repository, (placed) => {
    if (!mayChange(hub, request, repository, placed)) return notAccessible('issues=write')
    const fields = fieldsOf(request.body)
    const problems = commentProblems(fields)
    if (problems.length > 0) return invalid(...problems)
    editComment(placed, textField(fields, 'body') ?? '', request.now)
    return ok(restComment(hub, repository, placed.issue, placed.comment))
  })
}

export function removeComment(hub: Hub, request: ApiRequest, repository: Repository): Reply {
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
