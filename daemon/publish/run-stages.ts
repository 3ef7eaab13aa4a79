import { effectOf, type Fault, fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import {
  type Intent,
  type Journal,
  PUBLISH_PLANS,
  type Publication,
  type PublishStage,
} from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim, Clock, Git, GitHub, Journals, Log } from '../core/ports.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { type ProbeResult, STAGES, type Stage, type StageInput } from './stages.ts'
import type { PublishPolicy } from './validate-tree.ts'

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
  /** How long the owner may go without writing the journal, see `Journal.ownedUntil`. */
  stepMs: number
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
  const stages = stagesOf(publication, settings.policy)
  const first = stages.find((name) => STAGES[name].remote)
  for (const name of stages) {
    if (journal.markers[name] !== undefined) continue
    const isFirst = name === first && publication.plan !== 'notice'
    journal = await settleStage(ports, settings, journal, publication, name, isFirst)
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

async function requireEligible(settings: PublishSettings): Promise<void> {
  const reason = await settings.withdrawn()
  if (reason !== null) throw reason
}

async function settleStage(
  ports: PublishPorts,
  settings: PublishSettings,
  journal: Journal,
  publication: Publication,
  name: PublishStage,
  isFirst: boolean,
): Promise<Journal> {
  const stage: Stage = STAGES[name]
  const isOpen = journal.intent !== null
  // What may have happened is looked for before it is asked whether it is wanted (design §9).
  if (isFirst && !isOpen) await requireEligible(settings)
  const input = stageInput(ports, journal, publication)
  const recorded = (from: Journal, marker: string): Journal =>
    save(ports, settings, recordOf(from, name, marker))

  const seen = await probe(stage, input)
  if (seen.kind === 'found') {
    await settleTwins(ports, settings, stage, input)
    return recorded(journal, seen.marker)
  }
  if (!stage.remote) return recorded(journal, await stage.perform(input, seen))

  if (journal.intent !== null) await requireSettled(ports, settings, stage, input, journal.intent)
  const answered = journal.intent?.answered ?? null
  if (journal.intent !== null && answered !== null) {
    requirePatience(ports, settings, journal.intent)
    return recorded(journal, answered)
  }
  // Two looks found nothing, so nobody has seen anything of it: it may still be withdrawn.
  if (isFirst && isOpen) await requireEligible(settings)
  const windowMs = name === 'pushed' ? settings.pushTimeoutMs : LIMITS.intentMs
  const intended = save(ports, settings, intentOf(ports, journal, name, windowMs))
  try {
    const marker = await stage.perform(stageInput(ports, intended, publication), seen)
    if (intended.intent !== null && mayHaveTwin(stage, intended)) {
      const deadlineAt = toTimestamp(ports.clock.now())
      const intent = { ...intended.intent, deadlineAt, answered: marker }
      save(ports, settings, { ...intended, intent })
      throw pendingFault(ports, settings, intent)
    }
    return recorded(intended, marker)
  } catch (thrown) {
    if (effectOf(thrown) === 'none')
      // What an earlier try may have done stays open.
      save(ports, settings, { ...intended, intent: journal.intent })
    throw thrown
  }
}

/** A write that was repeated although nothing stops GitHub from taking both. */
function mayHaveTwin(stage: Stage, { intent }: Journal): boolean {
  return stage.removeDuplicates !== undefined && intent !== null && intent.attempt > 1
}

/**
 * Of a write that was repeated the first one may still come to light: it is looked for once the settle
 * time is over again, and the younger twin is removed (design §1.7). Until then the stage is pending.
 */
async function settleTwins(
  ports: PublishPorts,
  settings: PublishSettings,
  stage: Stage,
  input: StageInput,
): Promise<void> {
  const { intent } = input.journal
  if (intent === null || !mayHaveTwin(stage, input.journal)) return
  if (unsettledMs(ports, settings, intent) > 0) throw pendingFault(ports, settings, intent)
  for (const twin of (await stage.removeDuplicates?.(input)) ?? []) {
    ports.log.warn('twin removed', { stage: intent.stage, twin })
  }
}

/** Settle times for which a write that was certainly done may stay unseen. */
const PATIENCE = 4

/**
 * It was certainly done. That it is not seen means that GitHub is behind, perhaps with its twin too – or, in
 * the end, that somebody has removed it.
 */
function requirePatience(
  { clock }: PublishPorts,
  { policy }: PublishSettings,
  { stage, deadlineAt }: Intent,
): void {
  const now = clock.now()
  const last = fromTimestamp(deadlineAt) + PATIENCE * policy.settleMs
  if (now >= last) return
  const until = toTimestamp(Math.min(last, now + policy.settleMs))
  throw fault('publish/pending', { stage, until })
}

/** An open intent may be repeated only when it is old enough and two complete looks found nothing. */
async function requireSettled(
  ports: PublishPorts,
  settings: PublishSettings,
  stage: Stage,
  input: StageInput,
  intent: Intent,
): Promise<void> {
  const pending = pendingFault(ports, settings, intent)
  if (unsettledMs(ports, settings, intent) > 0) throw pending
  const again = await probe(stage, input)
  if (again.kind !== 'absent') throw pending // it has just appeared; the next look records it
}

/**
 * How long what was sent may still come to light, in milliseconds; 0 or less = it has had its time. By our
 * clock, and by GitHub's as far as this process has seen it: a clock of ours that is set ahead shortens nothing.
 */
function unsettledMs(
  { clock, github }: PublishPorts,
  { policy }: PublishSettings,
  { deadlineAt, serverTime }: Intent,
): number {
  const passed = clock.now() - fromTimestamp(deadlineAt)
  const theirs = github.serverTime()
  const passedThere = theirs === null ? passed : theirs - fromTimestamp(serverTime)
  return policy.settleMs - Math.min(passed, passedThere)
}

function pendingFault(ports: PublishPorts, settings: PublishSettings, intent: Intent): Fault {
  const until = ports.clock.now() + unsettledMs(ports, settings, intent)
  return fault('publish/pending', { stage: intent.stage, until: toTimestamp(until) })
}

async function probe(
  stage: Stage,
  input: StageInput,
): Promise<Exclude<ProbeResult, { kind: 'contradiction' }>> {
  const seen = await stage.probe(input)
  if (seen.kind === 'contradiction') throw seen.fault
  return seen
}

function stageInput(ports: PublishPorts, journal: Journal, publication: Publication): StageInput {
  const base = journal.base ?? { storePath: '', branch: '', oid: '' }
  return { git: ports.git, github: ports.github, journal, publication, base }
}

function intentOf(
  ports: PublishPorts,
  journal: Journal,
  stage: PublishStage,
  windowMs: number,
): Journal {
  const now = ports.clock.now()
  return {
    ...journal,
    intent: {
      stage,
      attempt: (journal.intent?.attempt ?? 0) + 1,
      serverTime: toTimestamp(ports.github.serverTime() ?? now),
      deadlineAt: toTimestamp(now + windowMs),
      bootId: ports.bootId,
      answered: null,
    },
  }
}

function recordOf(journal: Journal, stage: PublishStage, marker: string): Journal {
  return {
    ...journal,
    markers: { ...journal.markers, [stage]: marker },
    intent: null,
    notBefore: null,
    trouble: null,
    adoptions: 0,
  }
}

/**
 * Writes the journal, unless another process has taken the run over: its claim is another file then, or
 * its journal has another epoch (P§1). Faults: state/claim-mismatch.
 */
function save(ports: PublishPorts, settings: PublishSettings, journal: Journal): Journal {
  const epoch = ports.journals.read(journal.runId)?.epoch
  if (!ports.claim.isCurrent() || epoch !== journal.epoch) {
    throw fault('state/claim-mismatch', {
      run: journal.runId,
      issue: formatIssue(journal.key),
      found: `epoch ${epoch ?? 'unknown'} instead of ${journal.epoch}`,
    })
  }
  const ownedUntil = toTimestamp(ports.clock.now() + settings.stepMs)
  const owned: Journal = { ...journal, ownedUntil }
  ports.journals.write(owned)
  return owned
}
