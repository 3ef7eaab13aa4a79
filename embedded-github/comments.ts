// The comments on an issue.

import { takeId } from './ids.ts'
import { crossReference, touch } from './issue-events.ts'
import type { By, Comment, GitHubState, Issue, Repository } from './state.ts'

/** A comment with the issue it is on. */
export type PlacedComment = Readonly<{ issue: Issue; comment: Comment }>

export function findComment(repository: Repository, id: number): PlacedComment | null {
  for (const issue of repository.issues) {
    const comment = issue.comments.find((candidate) => candidate.id === id)
    if (comment !== undefined) return { issue, comment }
  }
  return null
}

export function addComment(
  state: GitHubState,
  repository: Repository,
  issue: Issue,
  body: string,
  by: By,
): Comment {
  const comment = {
    id: takeId(state),
    authorId: by.actorId,
    body,
    createdAt: by.now,
    updatedAt: by.now,
  }
  issue.comments.push(comment)
  touch(issue, by.now)
  crossReference(state, repository, issue, body, by)
  return comment
}

export function editComment({ issue, comment }: PlacedComment, body: string, now: number): void {
  comment.body = body
  comment.updatedAt = now
  touch(issue, now)
}

export function deleteComment({ issue, comment }: PlacedComment, now: number): void {
  issue.comments.splice(issue.comments.indexOf(comment), 1)
  touch(issue, now)
}
