import { asFault, type Fault, fault } from '../core/fault.ts'
import { FAULTS } from '../core/fault-catalogue.ts'
import { formatIssue, repositoryOf } from '../core/issue-key.ts'
import type { Journal, Publication, PublishPlan } from '../core/journal.ts'
import { toTimestamp } from '../core/timestamp.ts'
import type { EventName, PhaseEvent } from '../core/transitions.ts'
import { runStages } from '../publish/run-stages.ts'
import { checkEligible, checkExistingPull, findIssue } from './check-eligible.ts'
import { eventOfFault } from './outcome-of-fault.ts'
import type { RunPorts } from './run-ports.ts'

/** What a complete publication does to the issue. */
const EVENT_OF_PLAN = {
  code: 'published',
  findings: 'findings-posted',
  'no-changes': 'blocked',
  notice: 'blocked',
} as const satisfies Record<PublishPlan, EventName>

/** Publishes what is frozen and decides the outcome. Faults: those of `runStages`. */
export async function publishRun(ports: RunPorts, journal: Journal): Promise<Journal> {
  const { publication } = journal
  if (publication === null) {
    throw fault('internal/unexpected', { reason: 'the journal has no publication' })
  }
  const published = await runStages(
    { ...ports, bootId: ports.self.bootId },
    {
      policy: ports.settings.policy,
      pushTimeoutMs: ports.settings.pushTimeoutMs,
      stepMs: ports.settings.stepMs,
      withdrawn: () => whyIneligible(ports, journal),
    },
    journal,
    publication,
  )
  const ended: Journal = {
    ...published,
    stage: 'ended',
    outcome: published.outcome ?? (await outcomeOf(ports, published, publication)),
  }
  ports.journals.write(ended)
  return ended
}

/** Looked at once more right before others can see anything (case C41). null = it is still wanted. */
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

async function outcomeOf(
  ports: RunPorts,
  journal: Journal,
  publication: Publication,
): Promise<PhaseEvent> {
  const now = ports.clock.now()
  const { runId } = journal
  if (publication.plan === 'no-changes') {
    return eventOfFault(fault('publish/no-changes', { issue: formatIssue(journal.key) }), {
      runId,
      now,
      jitter: 0,
    })
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
    if (FAULTS[asFault(thrown).code].class !== 'terminal') throw thrown
    return ''
  }
}
