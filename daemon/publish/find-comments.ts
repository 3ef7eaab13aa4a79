import { type Fault, fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import type { ActionInput } from './action-input.ts'
import { doneByUs } from './our-doing.ts'
import { commentMarkerOf } from './render-publication.ts'

/** The ids of our comments, oldest first; none = it is not there. Or the list is behind, and nothing is known. */
export type FoundComments =
  | Readonly<{ kind: 'listed'; ids: readonly number[] }>
  | Readonly<{ kind: 'unclear'; fault: Fault }>

/** How far back from an intent a comment of ours may be dated. */
const LIST_BACK_MS = 60_000

/** Looks for the comments of this run. The marker counts only from our own account. Faults: github/*. */
export async function findComments(input: ActionInput): Promise<FoundComments> {
  const { github, journal, publication, intent } = input
  // Of a repeated write the first one is older than the intent, so all are looked at.
  const isFirst = intent?.attempt === 1
  const since = isFirst ? fromTimestamp(intent.serverTime) - LIST_BACK_MS : undefined
  const { value } = await github.comments(journal.key, since)
  const marker = commentMarkerOf(journal, publication.plan)
  const marked = value.filter(({ body }) => body.includes(marker))
  const ours = await doneByUs(input, marked, ({ authorId }) => authorId)
  // One that is missing would be sent again, or stay as a duplicate.
  const mayLack = !isFirst && ours.length < (intent?.attempt ?? 1)
  const behind = mayLack ? await behindBy(input, value.length) : null
  if (behind !== null) return { kind: 'unclear', fault: behind }
  return { kind: 'listed', ids: ours.map(({ id }) => id).sort((a, b) => a - b) }
}

/** Failed looks in a row after which a short list is taken as it is; of a write sent n times, n times as many. */
const SHORT_LISTS = 3

/**
 * Of a list that is shorter than the issue says: it is behind, or the issue counts what GitHub never lists, such as
 * comments of hidden accounts. Believing it in the end makes no duplicate: while no write is open none was sent, and
 * an open one still has to wait for the settle time and two looks. null = it is believed.
 */
async function behindBy(
  { github, journal, intent }: ActionInput,
  listed: number,
): Promise<Fault | null> {
  const { key, trouble } = journal
  if ((trouble?.count ?? 0) >= SHORT_LISTS * (intent?.attempt ?? 1)) return null
  const count = (await github.issue(key))?.commentCount ?? 0
  if (listed >= count) return null
  return fault('github/comments-unlisted', { issue: formatIssue(key), listed, count })
}
