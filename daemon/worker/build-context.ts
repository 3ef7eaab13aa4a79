import { fault } from '../core/fault.ts'
import { formatIssue, type IssueKey } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { IssueComment, IssueSummary, TimelineEvent } from '../core/ports.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { cutUtf8, measuredCut } from './cut-utf8.ts'

/** Whose comments a worker may take for instructions, and whose it never sees. */
export type CommentTrust = Readonly<{
  /** `feedback_author_allowlist`: exact logins. */
  trustedAuthors: readonly string[]
  /** `comment_ignore_patterns`, matched against the login. */
  ignoredAuthors: readonly RegExp[]
  /** Our own account: its comments never come back as input. */
  ownId: number | null
}>

type ContextComment = Readonly<{
  id: number
  author: string
  author_association: string
  body: string
  created_at: string
  updated_at: string
}>
type ContextEvent = Readonly<{
  kind: string
  actor: string | null
  created_at: string
  label_name: string | null
}>

type Retained = Readonly<{
  comments: ContextComment[]
  trusted: ContextComment[]
  events: ContextEvent[]
}>

/**
 * CADUCEUS_CONTEXT_JSON, as docs/the-bridge.md describes it.
 * At most 1 MiB: the oldest events go first, then the oldest untrusted, then the oldest trusted comments.
 * Faults: worker/context-too-large when nothing more can be dropped.
 */
export function buildContext(
  key: IssueKey,
  issue: IssueSummary,
  comments: readonly IssueComment[],
  timeline: readonly TimelineEvent[],
  trust: CommentTrust,
  now: number,
): string {
  const visible = comments.filter((comment) => isVisible(comment, trust))
  const trimmed = visible.map(toContextComment)
  const newest = trimmed.slice(-LIMITS.retainedComments)
  const isTrusted = (comment: ContextComment): boolean =>
    trust.trustedAuthors.includes(comment.author)
  const events = timeline.filter((event) => event.kind !== 'commented').map(toContextEvent)
  const retained: Retained = {
    comments: [...newest],
    trusted: newest.filter(isTrusted),
    events: events.slice(-LIMITS.retainedEvents),
  }
  const droppedBytes = visible.map(
    ({ body }) => measuredCut(body, LIMITS.commentBytes).droppedBytes,
  )
  const before = {
    comments: trimmed.length,
    trusted: trimmed.filter(isTrusted).length,
    events: events.length,
  }
  const render = (): string => {
    const dropped = {
      comments: before.comments - retained.comments.length,
      trusted: before.trusted - retained.trusted.length,
      events: before.events - retained.events.length,
    }
    return JSON.stringify({
      schema_version: 1,
      issue: { owner: key.owner, repo: key.name, number: key.number },
      issue_title: issue.title,
      issue_body: issue.body,
      labels: issue.labels,
      comments: retained.comments,
      trusted_comments: retained.trusted,
      events: retained.events,
      timeline: mergeTimeline(retained),
      trusted_edits: retained.trusted
        .filter(({ created_at, updated_at }) => created_at !== updated_at)
        .map(({ id, author, created_at, updated_at }) => ({ id, author, created_at, updated_at })),
      allowed_threads: retained.trusted.map(({ id }) => id),
      truncation: {
        comments_truncated: dropped.comments > 0,
        trusted_comments_truncated: dropped.trusted > 0,
        events_truncated: dropped.events > 0,
        dropped_untrusted_comments: dropped.comments - dropped.trusted,
        dropped_trusted_comments: dropped.trusted,
        dropped_events: dropped.events,
        body_truncated_count: droppedBytes.filter((bytes) => bytes > 0).length,
        total_body_bytes_dropped: droppedBytes.reduce((sum, bytes) => sum + bytes, 0),
      },
      built_at: toTimestamp(now),
    })
  }

  let json = render()
  for (let over = excess(json); over > 0; over = excess(json)) {
    if (!dropOldest(retained, over, isTrusted)) {
      throw fault('worker/context-too-large', {
        issue: formatIssue(key),
        maxBytes: LIMITS.contextBytes,
      })
    }
    json = render()
  }
  return json
}

function excess(json: string): number {
  return Buffer.byteLength(json) - LIMITS.contextBytes
}

function isVisible(comment: IssueComment, trust: CommentTrust): boolean {
  if (comment.authorId !== null && comment.authorId === trust.ownId) return false
  const author = comment.author ?? ''
  return !trust.ignoredAuthors.some((pattern) => pattern.test(author))
}

/** Drops from the least valuable list, oldest first, until about `bytes` are gone; false = nothing to drop. */
function dropOldest(
  retained: Retained,
  bytes: number,
  isTrusted: (comment: ContextComment) => boolean,
): boolean {
  let freed = 0
  const size = (item: ContextComment | ContextEvent): number =>
    Buffer.byteLength(JSON.stringify(item))
  // An event stands in two lists, and so does a trusted comment.
  while (freed < bytes && retained.events.length > 0)
    freed += 2 * size(retained.events.shift() ?? NO_EVENT)
  while (freed < bytes) {
    const oldest = retained.comments.findIndex((comment) => !isTrusted(comment))
    if (oldest < 0) break
    freed += retained.comments.splice(oldest, 1).reduce((sum, comment) => sum + size(comment), 0)
  }
  while (freed < bytes && retained.trusted.length > 0) {
    const [comment] = retained.trusted.splice(0, 1)
    if (comment === undefined) break
    retained.comments.splice(retained.comments.indexOf(comment), 1)
    freed += 2 * size(comment)
  }
  return freed > 0
}

const NO_EVENT: ContextEvent = { kind: '', actor: null, created_at: '', label_name: null }

function toContextComment(comment: IssueComment): ContextComment {
  return {
    id: comment.id,
    author: comment.author ?? 'ghost',
    author_association: comment.authorAssociation,
    body: cutUtf8(comment.body, LIMITS.commentBytes),
    created_at: toTimestamp(comment.createdAt),
    updated_at: toTimestamp(comment.updatedAt),
  }
}

function toContextEvent(event: TimelineEvent): ContextEvent {
  return {
    kind: event.kind,
    actor: event.actor,
    created_at: toTimestamp(event.createdAt),
    label_name: event.label,
  }
}

/** Comments and events in the order they happened; comments by id, so that no body stands twice. */
function mergeTimeline(retained: Retained): readonly object[] {
  const comments = retained.comments.map(({ id, author, created_at }) => ({
    at: created_at,
    kind: 'commented',
    actor: author,
    comment_id: id,
  }))
  const events = retained.events.map(({ kind, actor, created_at, label_name }) => ({
    at: created_at,
    kind,
    actor,
    label_name,
  }))
  return [...comments, ...events].sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
}
