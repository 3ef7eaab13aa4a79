import { type Fault, fault, isFault } from '../core/fault.ts'
import {
  type Intent,
  type Journal,
  PUBLISH_PLANS,
  type Publication,
  type PublishStage,
} from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim, Clock, Git, GitHub, Journals, Log } from '../core/ports.ts'
import type { PublishPolicy } from '../core/publish-policy.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { type Probe, STAGES, type Stage, type StageInput } from './stages.ts'

// The publish protocol (P§3). For each stage of the plan: look; if it is there, record it. If not,
// write the intent, act, record. A write whose effect is unknown leaves its intent open; it is repeated
// only after the settle time and two looks that both find nothing. Until then the run is pending: the
// runner leaves, and a later one goes on here.

export type PublishPorts = Readonly<{
  git: Git
  github: GitHub
  journals: Journals
  claim: Pick<Claim, 'isCurrent'>
  clock: Clock
  log: Log
  bootId: string
}>

export type PublishSettings = Readonly<{
  policy: PublishPolicy
  /** How long a push may take; every other write ends within `LIMITS.intentMs`. */
  pushTimeoutMs: number
  /** Whether the issue was withdrawn; asked right before the first effect others can see. */
  withdrawn: () => Promise<Fault | null>
}>

/**
 * Carries the publication to its end and returns the journal with every marker.
 * Faults: everything the stages fault with; the journal on disk then says how far it came, and whether
 * a write is open. Class terminal and cancelled are final, the others may pass by themselves.
 */
export async function runStages(
  ports: PublishPorts,
  settings: PublishSettings,
  start: Journal,
  publication: Publication,
): Promise<Journal> {
  let journal = start
  for (const name of stagesOf(publication, settings.policy)) {
    if (journal.markers[name] !== undefined) continue
    if (name === 'pushed') await requireWanted(settings, journal)
    journal = await settleStage(ports, settings, journal, publication, name)
    ports.log.info('publish stage done', { stage: name, marker: journal.markers[name] })
  }
  return journal
}

/** The stages this installation wants of a plan. */
export function stagesOf(publication: Publication, policy: PublishPolicy): readonly PublishStage[] {
  const closes =
    publication.plan === 'findings'
      ? policy.closeIssue !== 'never'
      : policy.closeIssue === 'finalize'
  const wanted: Readonly<Partial<Record<PublishStage, boolean>>> = {
    label_removed: policy.removeLabel,
    closed: closes,
  }
  return PUBLISH_PLANS[publication.plan].filter((stage) => wanted[stage] ?? true)
}

async function requireWanted(settings: PublishSettings, journal: Journal): Promise<void> {
  if (journal.intent !== null) return // the push may have happened; from there on we finish (design §9)
  const reason = await settings.withdrawn()
  if (reason !== null) throw reason
}

async function settleStage(
  ports: PublishPorts,
  settings: PublishSettings,
  journal: Journal,
  publication: Publication,
  name: PublishStage,
): Promise<Journal> {
  const stage: Stage = STAGES[name]
  const input = stageInput(ports, journal, publication)
  const seen = await probe(stage, input)
  if (seen.kind === 'found') return record(ports, journal, name, seen.marker)
  if (!stage.remote) return record(ports, journal, name, await stage.perform(input))

  if (journal.intent !== null) await requireSettled(ports, settings, stage, input, journal.intent)
  const windowMs = name === 'pushed' ? settings.pushTimeoutMs : LIMITS.intentMs
  const intended = writeIntent(ports, journal, name, windowMs)
  try {
    const marker = await stage.perform(stageInput(ports, intended, publication))
    return record(ports, intended, name, marker)
  } catch (thrown) {
    if (isFault(thrown) && thrown.details['effect'] === 'none')
      save(ports, { ...intended, intent: null })
    throw thrown
  }
}

/** An open intent may be repeated only when it is old enough and two complete looks found nothing. */
async function requireSettled(
  ports: PublishPorts,
  settings: PublishSettings,
  stage: Stage,
  input: StageInput,
  intent: Intent,
): Promise<void> {
  const settledAt = fromTimestamp(intent.deadlineAt) + settings.policy.settleMs
  const pending = (): Fault =>
    fault('publish/pending', { stage: intent.stage, until: toTimestamp(settledAt) })
  if (ports.clock.now() < settledAt) throw pending()
  const again = await probe(stage, input)
  if (again.kind !== 'absent') throw pending() // it has just appeared; the next look records it
}

async function probe(stage: Stage, input: StageInput): Promise<Probe> {
  const seen = await stage.probe(input)
  if (seen.kind === 'contradiction') throw seen.fault
  return seen
}

function stageInput(ports: PublishPorts, journal: Journal, publication: Publication): StageInput {
  const base = journal.base ?? { storePath: '', branch: '', oid: '' }
  return { git: ports.git, github: ports.github, journal, publication, base }
}

function writeIntent(
  ports: PublishPorts,
  journal: Journal,
  stage: PublishStage,
  windowMs: number,
): Journal {
  const now = ports.clock.now()
  return save(ports, {
    ...journal,
    intent: {
      stage,
      attempt: (journal.intent?.attempt ?? 0) + 1,
      serverTime: toTimestamp(ports.github.serverTime() ?? now),
      deadlineAt: toTimestamp(now + windowMs),
      bootId: ports.bootId,
    },
  })
}

function record(
  ports: PublishPorts,
  journal: Journal,
  stage: PublishStage,
  marker: string,
): Journal {
  return save(ports, {
    ...journal,
    markers: { ...journal.markers, [stage]: marker },
    intent: null,
    notBefore: null,
    trouble: null,
  })
}

/** Writes the journal, unless another process has taken the run over. Faults: state/claim-mismatch. */
function save(ports: PublishPorts, journal: Journal): Journal {
  if (!ports.claim.isCurrent()) {
    throw fault('state/claim-mismatch', { run: journal.runId, issue: '', found: 'another claim' })
  }
  ports.journals.write(journal)
  return journal
}
