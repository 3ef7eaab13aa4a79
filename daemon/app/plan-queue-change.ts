import { fateOfRun } from '../core/fate-of-run.ts'
import { fault } from '../core/fault.ts'
import { formatIssue, type IssueKey, issueId } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { refusalHint } from '../core/queue-verbs.ts'
import { fileStatus, isDirectory } from '../sys/files.ts'
import type { QueueChangeParts } from './end-last-run.ts'
import { readLastRun } from './open-queue.ts'
import type { QueueChangePlan, QueueChangeRequest } from './report-queue-change.ts'

/** Whether the entry may be changed, and what that means for its last run. Faults: queue/unknown, queue/refused. */
export function planQueueChange(
  parts: QueueChangeParts,
  { verb, isForced }: QueueChangeRequest,
  key: IssueKey,
): QueueChangePlan {
  const entry = parts.store.readQueue().entries[issueId(key)]
  const issue = formatIssue(entry?.key ?? key)
  if (entry === undefined) throw fault('queue/unknown', { issue })
  const hint = refusalHint(verb, entry)
  if (hint !== null) throw fault('queue/refused', { issue, phase: entry.phase, verb, hint })
  const last = readLastRun(parts, entry)
  const isRetained = last.journal !== null && isWorkRetained(parts, last.journal)
  return {
    entry,
    last,
    fate: fateOfRun(verb, entry, last.journal, { isRetained, isForced }),
  }
}

function isWorkRetained({ layout }: QueueChangeParts, { runId, treePath }: Journal): boolean {
  return fileStatus(layout.run(runId).result) !== null && isDirectory(treePath)
}

/** What the operator has to know before the change. */
export function warningsOf(
  { config }: QueueChangeParts,
  { entry, last, fate }: QueueChangePlan,
): readonly string[] {
  const { journal, problem } = last
  if (problem !== null) return [`Nothing of run ${last.runId} goes on: ${problem}`]
  if (fate.kind !== 'dropped' || journal === null) return []
  const { pr_created: number, committed } = journal.markers
  const pull = number === undefined ? 'none' : `#${number} ${entry.pull?.url ?? ''}`.trim()
  const isInTheWay = number !== undefined && config.existingPr === 'skip'
  return [
    `The work of run ${fate.runId} is given up: branch ${journal.branch}, stage ${fate.stage}, ` +
      `pull request ${pull}, commit ${committed ?? 'none'}. ` +
      'The remote branch and the pull request are not deleted.',
    ...(isInTheWay
      ? ['While that pull request is open, a new run is skipped (existing_pr): close it first.']
      : []),
  ]
}
