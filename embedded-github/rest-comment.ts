import type { components } from '@octokit/openapi-types'
import { htmlUrl, issueUrl, noReactions } from './rest-issue.ts'
import { repositoryUrl } from './rest-repository.ts'
import { nodeId, userOrNull, type View } from './rest-user.ts'
import { associationOf } from './roles.ts'
import type { Comment, Issue, Repository } from './state.ts'
import { isoSecond } from './times.ts'

type RestComment = components['schemas']['issue-comment']

export function restComment(
  view: View,
  repository: Repository,
  issue: Issue,
  comment: Comment,
): RestComment {
  const url = `${repositoryUrl(view, repository)}/issues/comments/${comment.id}`
  return {
    id: comment.id,
    node_id: nodeId('IC', comment.id),
    url,
    html_url: `${htmlUrl(view, repository, issue)}#issuecomment-${comment.id}`,
    issue_url: issueUrl(view, repository, issue),
    body: comment.body,
    user: userOrNull(view, comment.authorId),
    author_association: associationOf(view.state, repository, comment.authorId),
    created_at: isoSecond(comment.createdAt),
    updated_at: isoSecond(comment.updatedAt),
    performed_via_github_app: null,
    reactions: noReactions(url),
  }
}
