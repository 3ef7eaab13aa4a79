import { openPullClosing } from '../core/closing-reference.ts'
import { type Fault, fault } from '../core/fault.ts'
import {
  formatIssue,
  formatRepository,
  type IssueKey,
  type RepositoryName,
  repositoryOf,
} from '../core/issue-key.ts'
import { findLabel, type Ticket, type TriggerLabels, ticketOf } from '../core/labels.ts'
import { LIMITS } from '../core/limits.ts'
import type { GitHub, IssueSummary, TimelineEvent } from '../core/ports.ts'
import { eachBounded } from '../sys/bounded-waits.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

/**
 * The fault that keeps an issue from being worked on because a pull request, by anybody, will close it
 * already (`existing_pr: skip`, case C40); null = there is none.
 */
export function checkExistingPull(
  key: IssueKey,
  timeline: readonly TimelineEvent[],
  ownLogin: string,
): Fault | null {
  const pull = openPullClosing(timeline, key, ownLogin)
  if (pull === null) return null
  return fault('issue/has-pull', {
    issue: formatIssue(key),
    pull: `${formatRepository(pull.repository ?? key)}#${pull.number}`,
    author: pull.author ?? 'somebody',
  })
}

type Probed = Awaited<ReturnType<GitHub['issue']>>

/** The issue; null = gone. Faults: as `lookTwice`. */
export async function findIssue(
  github: Pick<GitHub, 'issue' | 'repository'>,
  key: IssueKey,
): Promise<Probed> {
  return probeTwice(github, repositoryOf(key), () => github.issue(key))
}

/**
 * A thing of a repository, asked for twice before it counts as gone (null): GitHub's 404 is now and then a
 * passing one. Where the whole repository is out of sight, the token may be to blame, and nothing is known.
 * Faults: github/not-found for the repository; github/*.
 */
export async function probeTwice<Found>(
  github: Pick<GitHub, 'repository'>,
  repository: RepositoryName,
  look: () => Promise<Found | null>,
): Promise<Found | null> {
  const found = (await look()) ?? (await look())
  if (found !== null || (await github.repository(repository)) !== null) return found
  throw fault('github/not-found', { what: formatRepository(repository) })
}

export type Eligibility =
  | Readonly<{ kind: 'wanted'; issue: IssueSummary; label: string }>
  | Readonly<{ kind: 'withdrawn'; fault: Fault }>

/**
 * Whether an issue still asks for the run it was queued for (R§5.7 with the fuller check W16 misses).
 * Withdrawn: gone, moved, closed, a pull request, the label removed, or both labels set.
 */
export function checkEligible(
  key: IssueKey,
  ticket: Ticket,
  triggers: TriggerLabels,
  issue: Probed,
): Eligibility {
  const withdrawn = (reason: string): Eligibility => ({
    kind: 'withdrawn',
    fault: fault('issue/withdrawn', { issue: formatIssue(key), reason }),
  })
  if (issue === null) return withdrawn('it was not found')
  if (issue.movedTo !== null) return withdrawn(`it moved to ${formatIssue(issue.movedTo)}`)
  if (issue.isPullRequest) return withdrawn('it is a pull request')
  if (!issue.isOpen) return withdrawn('it was closed')
  const label = findLabel(issue.labels, triggers[ticket])
  if (label === null) return withdrawn('its label was removed')
  if (ticketOf(issue.labels, triggers) === 'ambiguous') {
    return { kind: 'withdrawn', fault: fault('issue/ambiguous', { issue: formatIssue(key) }) }
  }
  return { kind: 'wanted', issue, label }
}

/**
 * Ends the workers of issues that are no longer wanted: closed, moved, unlabelled, gone (case C41). Asked
 * for each run at work, because a list of issues does not show one that has left it. Only while the worker runs: later the run looks for itself, right before it publishes.
 */
export async function cancelIneligible(ports: TickPorts): Promise<readonly TickProblem[]> {
  const { store, journals, github, settings, log } = ports
  const atWork = Object.values(store.readQueue().entries).flatMap(({ phase, key, runId }) =>
    phase === 'in_progress' && runId !== null ? [{ key, runId }] : [],
  )
  const problems: TickProblem[] = []
  await eachBounded(atWork, LIMITS.httpConcurrency, async ({ key, runId }) => {
    try {
      const journal = journals.read(runId)
      if (journal?.stage !== 'launching') return
      const issue = await findIssue(github, key)
      const wanted = checkEligible(key, journal.ticket, settings.triggers, issue)
      if (wanted.kind === 'wanted') return
      ports.cancelWorker(runId)
      log.info('worker cancelled', {
        issue: formatIssue(key),
        runId,
        reason: wanted.fault.message,
      })
    } catch (thrown) {
      problems.push({ where: formatIssue(key), thrown }) // asked again by the next tick
    }
  })
  return problems
}
