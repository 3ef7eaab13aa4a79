import { formatIssue } from './issue-key.ts'
import type { Journal } from './journal.ts'
import type { QueueEntry } from './queue-state.ts'

// What a human may do with work that came to a halt: let the paid work go on, or begin anew.

/** A stage a halted run can go on from without another worker. */
type Resumable = 'finished' | 'publishing'

/**
 * Where a run that a fault ended after its worker had succeeded can go on; null = it has to be begun anew.
 * With nothing of it on GitHub, and no write open, its texts are frozen again: the rules that stopped it
 * may have changed. Otherwise it says what it said before (design §9).
 */
export function resumableStage(journal: Journal): Resumable | null {
  if (journal.endedIn !== 'finished' && journal.endedIn !== 'publishing') return null
  if (journal.outcome?.on !== 'blocked' && journal.outcome?.on !== 'withdrawn') return null
  const { publication, markers, intent } = journal
  if (publication === null || publication.plan === 'notice') return 'finished'
  const isSeen = Object.keys(markers).some((stage) => stage !== 'committed')
  return isSeen || intent !== null ? 'publishing' : 'finished'
}

/** The journal of a halted run, made ready to go on; null = it cannot. */
export function reopenJournal(journal: Journal): Journal | null {
  const stage = resumableStage(journal)
  if (stage === null) return null
  const anew =
    stage === 'finished'
      ? { publication: null, markers: pushedCommit(journal.markers), intent: null }
      : {}
  return {
    ...journal,
    ...anew,
    stage,
    // A human asks, who may have mended the clone's settings for it.
    remote: null,
    epoch: journal.epoch + 1,
    adoptions: 0,
    runner: null,
    ownedUntil: null,
    notBefore: null,
    trouble: null,
    outcome: null,
    endedIn: null,
  }
}

/**
 * A commit that was put on its branch stays the one that is published: another one could not be put there. Whether
 * it is there still is looked at again, because people have had time for that branch since.
 */
function pushedCommit({ committed, pushed }: Journal['markers']): Journal['markers'] {
  return committed === undefined || pushed === undefined ? {} : { committed }
}

/** After these the run has said all it had to say, so that only another one can change anything. */
const SAID_ALL: ReadonlySet<string> = new Set([
  'publish/no-changes',
  'publish/closed-unmerged',
  'publish/pull-gone',
])

/**
 * What a human can do about an entry that nothing more happens to by itself, ending in the exact command;
 * empty for the others.
 */
export function nextStepOf(entry: QueueEntry): string {
  if (entry.phase !== 'needs_attention' && entry.phase !== 'failed') return ''
  const { source = '', hint = '' } = entry.blocked ?? {}
  const verb = SAID_ALL.has(source) ? 'reprocess' : 'reset'
  const command = `To try again: caduceus queue ${verb} ${formatIssue(entry.key)}`
  return hint === '' ? command : `${hint} ${command}`
}
