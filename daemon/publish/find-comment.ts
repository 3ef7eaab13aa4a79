import { fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal, Publication } from '../core/journal.ts'
import type { GitHub } from '../core/ports.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import { commentMarkerOf } from './freeze-publication.ts'

/** How far back from an intent a comment of ours may be dated (P§3). */
const LOOK_BACK_MS = 60_000

/**
 * The id of our comment of this run, or null when it certainly is not there. The marker counts only
 * from our own account. Without an intent the whole list is read and must be as long as the issue says,
 * else the list is behind and nothing is known.
 * Faults: github/bad-answer when the list is behind; github/*.
 */
export async function findComment(
  github: GitHub,
  journal: Journal,
  publication: Publication,
): Promise<number | null> {
  const since =
    journal.intent === null ? null : fromTimestamp(journal.intent.serverTime) - LOOK_BACK_MS
  const { value } =
    since === null ? await github.comments(journal.key) : await github.comments(journal.key, since)
  const marker = commentMarkerOf(journal, publication.plan)
  const ours = value
    .filter(({ authorId, body }) => authorId === publication.actorId && body.includes(marker))
    .map(({ id }) => id)
  if (ours.length > 0) return Math.min(...ours)

  if (since === null) {
    const issue = await github.issue(journal.key)
    if (issue !== null && value.length < issue.commentCount) {
      throw fault('github/bad-answer', {
        request: `the comments of ${formatIssue(journal.key)}`,
        reason: `${value.length} of ${issue.commentCount} were listed`,
      })
    }
  }
  return null
}
