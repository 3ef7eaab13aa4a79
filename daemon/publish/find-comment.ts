import { fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal, Publication } from '../core/journal.ts'
import type { GitHub } from '../core/ports.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import { commentMarkerOf } from './freeze-publication.ts'

/** How far back from an intent a comment of ours may be dated (P§3). */
const LOOK_BACK_MS = 60_000

/**
 * The ids of our comments of this run, oldest first; none = it certainly is not there. The marker counts only
 * from our own account. Unless a first write is open, the whole list is read and must be as long as the issue says,
 * else the list is behind and nothing is known.
 * Faults: github/bad-answer when the list is behind; github/*.
 */
export async function findComments(
  github: GitHub,
  journal: Journal,
  publication: Publication,
): Promise<readonly number[]> {
  const { intent } = journal
  // Of a repeated write the first one is older than the intent, so all are looked at.
  const since = intent?.attempt === 1 ? fromTimestamp(intent.serverTime) - LOOK_BACK_MS : null
  const { value } =
    since === null ? await github.comments(journal.key) : await github.comments(journal.key, since)
  const marker = commentMarkerOf(journal, publication.plan)
  const ours = value
    .filter(({ authorId, body }) => authorId === publication.actorId && body.includes(marker))
    .map(({ id }) => id)
  if (ours.length > 0) return ours.sort((a, b) => a - b)

  if (since === null) {
    const issue = await github.issue(journal.key)
    if (issue !== null && value.length < issue.commentCount) {
      throw fault('github/bad-answer', {
        request: `the comments of ${formatIssue(journal.key)}`,
        reason: `${value.length} of ${issue.commentCount} were listed`,
      })
    }
  }
  return []
}
