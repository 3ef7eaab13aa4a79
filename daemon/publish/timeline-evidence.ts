import { isSameLabel } from '../core/labels.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import type { ActionInput } from './action-input.ts'
import { doneByUs } from './our-doing.ts'

/** GitHub's times have whole seconds, and its servers differ a little. */
const CLOCK_SLACK_MS = 2_000

/**
 * After an open intent: whether our account did it since. A person's later reversal then stands, because the action
 * counts as done.
 */
export async function didOurselves(
  input: ActionInput,
  kind: 'unlabeled' | 'closed',
): Promise<boolean> {
  const { github, journal, intent } = input
  if (intent === null) return false
  const since = fromTimestamp(intent.serverTime) - CLOCK_SLACK_MS
  const { value } = await github.timeline(journal.key)
  const done = value.filter(
    (event) =>
      event.kind === kind &&
      event.createdAt >= since &&
      (kind === 'closed' || (event.label !== null && isSameLabel(event.label, journal.label))),
  )
  return (await doneByUs(input, done, ({ actorId }) => actorId)).length > 0
}
