import { asFault, type Fault, fault, isFaultOf } from '../core/fault.ts'
import { policyOf } from '../core/fault-catalogue.ts'
import { repositoryOf } from '../core/issue-key.ts'
import type { Journal, Publication, PublishPlan } from '../core/journal.ts'
import { toTimestamp } from '../core/timestamp.ts'
import type { EventName, PhaseEvent } from '../core/transitions.ts'
import { renderNotice } from '../publish/render-publication.ts'
import { runActions } from '../publish/run-actions.ts'
import { checkEligible, checkExistingPull, findIssue } from './check-eligible.ts'
import { eventOfFault } from './outcome-of-fault.ts'
import type { RunPorts } from './run-ports.ts'
import { end, next, type StageResult, wait } from './stage-result.ts'

/** What a complete publication does to the issue. */
const EVENT_OF_PLAN = {
  code: 'published',
  findings: 'findings-posted',
  'no-changes': 'blocked',
  notice: 'blocked',
} as const satisfies Record<PublishPlan, EventName>

/** Publishes what is pinned and decides the outcome. Faults: those of `runActions`. */
export async function publishRun(ports: RunPorts, journal: Journal): Promise<StageResult> {
  const { publication } = journal
  if (publication === null) {
    throw fault('internal/unexpected', { reason: 'the journal has no publication' })
  }
  const published = await runActions(
    { ...ports, bootId: ports.self.bootId },
    {
      policy: ports.settings.policy,
      pushTimeoutMs: ports.settings.pushTimeoutMs,
      stepMs: ports.settings.stepMs,
      whyIneligible: () => whyIneligible(ports, journal),
    },
    journal,
    publication,
  )
  switch (published.kind) {
    case 'waits':
      return wait(published.journal, published.reason)
    case 'stopped':
      return stopped(ports, published.journal, publication, published.reason)
    case 'published': {
      const outcome =
        published.journal.outcome ?? (await outcomeOf(ports, published.journal, publication))
      const ended: Journal = { ...published.journal, stage: 'ended', outcome }
      ports.journals.write(ended)
      return next(ended)
    }
    default:
      return published satisfies never
  }
}

/** Looked at once more right before others can see anything. null = it still asks for the run. */
async function whyIneligible(
  ports: RunPorts,
  { key, ticket, publication }: Journal,
): Promise<Fault | null> {
  const { triggers, existingPull } = ports.settings
  const wanted = checkEligible(key, ticket, triggers, await findIssue(ports.github, key))
  if (wanted.kind === 'withdrawn') return wanted.fault
  // Findings are worth posting whoever has a pull request by now.
  if (existingPull === 'ignore' || ticket === 'investigation') return null
  const { value } = await ports.github.timeline(key)
  return checkExistingPull(key, value, publication?.actorLogin ?? '')
}

/** What contradicts the run is told on the issue, in one comment and nothing else; any other stop ends it at once. */
function stopped(
  ports: RunPorts,
  journal: Journal,
  publication: Publication,
  reason: Fault,
): StageResult {
  const { runId } = journal
  const event = eventOfFault(reason, { runId, now: ports.clock.now(), jitter: 0 })
  const text = noticeOf(reason, journal)
  const notice =
    text === null || publication.plan === 'notice'
      ? null
      : renderNotice(journal, publication, text, ports.settings.policy)
  if (notice === null) return end(journal, event)
  const noticing: Journal = {
    ...journal,
    publication: notice,
    intent: null,
    outcome: event,
    endedIn: 'publishing',
  }
  ports.journals.write(noticing)
  return next(noticing)
}

/** What people on GitHub would else wonder about; null = they need not know. */
function noticeOf(reason: Fault, { branch }: Journal): string | null {
  if (isFaultOf(reason, 'git/foreign-branch')) {
    return (
      `The branch \`${branch}\` holds a commit that is not part of this work (${reason.details.found}). ` +
      'Nothing was overwritten and no pull request was opened; the work is kept where it was done.'
    )
  }
  if (isFaultOf(reason, 'github/foreign-pull')) {
    return (
      `Pull request #${reason.details.number} was opened from the branch \`${branch}\` by another account. ` +
      'It was left as it is, and no other one was opened.'
    )
  }
  return null
}

async function outcomeOf(
  ports: RunPorts,
  journal: Journal,
  publication: Publication,
): Promise<PhaseEvent> {
  const now = ports.clock.now()
  const { runId } = journal
  if (publication.plan === 'no-changes') {
    return eventOfFault(fault('publish/no-changes'), { runId, now, jitter: 0 })
  }
  const event = { on: EVENT_OF_PLAN[publication.plan], at: toTimestamp(now), runId } as const
  const number = journal.markers.pr_created
  if (number === undefined) return event
  return {
    ...event,
    pull: { number: Number(number), url: await urlOf(ports, journal, Number(number)) },
  }
}

/** Only for people to click on: that GitHub will not say it takes nothing back. */
async function urlOf({ github }: RunPorts, { key }: Journal, number: number): Promise<string> {
  try {
    return (await github.pullRequest(repositoryOf(key), number))?.url ?? ''
  } catch (thrown) {
    if (!policyOf(asFault(thrown).code).isRefusal) throw thrown
    return ''
  }
}
