import { formatIssue } from './issue-key.ts'
import type { Phase, QueueEntry } from './queue-state.ts'

/** The commands that queue an entry again, and the event of `core/transitions.ts` that each one is. */
export const QUEUE_VERBS = {
  reset: { event: 'reset' },
  reprocess: { event: 'reprocessed' },
} as const satisfies Record<string, { event: 'reset' | 'reprocessed' }>

export type QueueVerb = keyof typeof QUEUE_VERBS

/** What to do instead, with `{issue}` for the issue; null = the command is allowed. */
type Hint = string | null

const REFUSALS = {
  reset: {
    failed: null,
    skipped: null,
    needs_attention: null,
    queued:
      'It waits for its turn already, see: caduceus queue show {issue}. ' +
      'To forget its earlier runs: caduceus queue reprocess {issue}',
    in_progress:
      'Its run goes on by itself, see: caduceus queue show {issue}. ' +
      'To give a run up whose processes are gone: caduceus queue reprocess {issue}',
    previewed:
      'It begins by itself once dry_run is off. ' +
      'For another dry run: caduceus queue reprocess {issue}',
    awaiting_review: 'Merge its pull request, or close it; closed unmerged it can be reset.',
    done: 'To have it worked on once more: caduceus queue reprocess {issue}',
  },
  reprocess: {
    failed: null,
    skipped: null,
    needs_attention: null,
    queued: null,
    in_progress: null,
    previewed: null,
    awaiting_review: 'Merge or close its pull request first; the next tick notices that.',
    done: null,
  },
} as const satisfies Record<QueueVerb, Record<Phase, Hint>>

/** What to do instead in the entry's phase; null = the command is allowed. */
export function refusalHint(verb: QueueVerb, { phase, key }: QueueEntry): string | null {
  const hint: Hint = REFUSALS[verb][phase]
  return hint === null ? null : hint.replaceAll('{issue}', formatIssue(key))
}
