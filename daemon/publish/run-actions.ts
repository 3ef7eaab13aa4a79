import { effectOf, type Fault, fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import {
  type Intent,
  type Journal,
  PUBLISH_PLANS,
  type Publication,
  type PublishAction,
} from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import { type Absent, type NextWrite, nextWrite, type WriteFacts } from '../core/next-write.ts'
import type { Claim, Clock, Git, GitHub, Journals, Log } from '../core/ports.ts'
import { toTimestamp } from '../core/timestamp.ts'
import type { ActionInput } from './action-input.ts'
import { ACTIONS, type Action, type Sent } from './actions.ts'
import type { PublishPolicy } from './validate-tree.ts'

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
  /** Why the issue does not ask for the run any more; asked right before the first effect others can see. */
  whyIneligible: () => Promise<Fault | null>
}>

/** How far a publication came. The journal is the one that is stored. */
export type Published =
  | Readonly<{ kind: 'published'; journal: Journal }>
  /** It goes on later; `reason` says when, or why. */
  | Readonly<{ kind: 'waits'; journal: Journal; reason: Fault }>
  /** It does not go on: the issue does not ask for it any more, or GitHub contradicts it. */
  | Readonly<{ kind: 'stopped'; journal: Journal; reason: Fault }>

/**
 * Walks the actions of a publication (PROTOCOLS, Writes to GitHub).
 * Faults: those of looks and writes; the journal on disk then says how far it came, and whether a write is open.
 */
export async function runActions(
  ports: PublishPorts,
  settings: PublishSettings,
  start: Journal,
  publication: Publication,
): Promise<Published> {
  let journal = start
  const names = actionsOf(publication, settings.policy)
  const first = publication.plan === 'notice' ? null : names.find((name) => ACTIONS[name].isRemote)
  for (const name of names) {
    if (journal.markers[name] !== undefined) continue
    const isFirst = name === first
    const walked = await walk({ ports, settings, publication, name, isFirst }, journal)
    if (walked.kind !== 'recorded') return walked
    journal = walked.journal
    ports.log.info('publish action done', { action: name, marker: journal.markers[name] })
  }
  return { kind: 'published', journal }
}

/** The actions this installation wants of a plan. */
export function actionsOf(
  publication: Publication,
  policy: PublishPolicy,
): readonly PublishAction[] {
  const closes =
    publication.plan === 'findings'
      ? policy.closeIssue !== 'never'
      : policy.closeIssue === 'finalize'
  const enabled: Readonly<Partial<Record<PublishAction, boolean>>> = {
    label_removed: policy.removeLabel,
    closed: closes,
  }
  return PUBLISH_PLANS[publication.plan].filter((action) => enabled[action] ?? true)
}

type Walk = Readonly<{
  ports: PublishPorts
  settings: PublishSettings
  publication: Publication
  name: PublishAction
  isFirst: boolean
}>

type Walked =
  | Readonly<{ kind: 'recorded'; journal: Journal }>
  | Exclude<Published, { kind: 'published' }>

/** One action: does what `nextWrite` says and tells it what came of it, until it is recorded, waits or stops. */
async function walk(of: Walk, start: Journal): Promise<Walked> {
  const action: Action = ACTIONS[of.name]
  let journal = start
  let came: CameOf = { looks: [], eligibility: 'unasked', sent: null, duplicatesRemoved: false }
  for (;;) {
    const next: NextWrite = nextWrite({ ...factsOf(of, action, journal), ...came })
    switch (next.do) {
      case 'ask':
        came = { ...came, eligibility: (await of.settings.whyIneligible()) ?? 'eligible' }
        break
      case 'look':
        came = { ...came, looks: [...came.looks, await action.look(inputOf(of, journal))] }
        break
      case 'remove-duplicates': {
        const removed = await action.removeDuplicates?.(inputOf(of, journal))
        if (removed?.kind === 'unclear') return { kind: 'waits', journal, reason: removed.fault }
        const markers = removed?.markers ?? []
        if (markers.length > 0)
          of.ports.log.warn('duplicates removed', { action: of.name, markers })
        came = { ...came, duplicatesRemoved: true }
        break
      }
      case 'send': {
        const intended = action.isRemote ? save(of, withIntent(of, journal)) : journal
        const sent = await send(of, action, { before: journal, intended }, next.seen)
        if (sent.kind === 'contradiction') {
          return { kind: 'stopped', journal: save(of, journal), reason: sent.fault }
        }
        journal = intended
        came = { ...came, sent: sent.marker }
        break
      }
      case 'record':
        return { kind: 'recorded', journal: save(of, recorded(journal, of.name, next.marker)) }
      case 'note-answer':
        journal = save(of, withAnswer(of, journal, next.marker))
        return { kind: 'waits', journal, reason: pending(of.name, next.until) }
      case 'wait':
        return { kind: 'waits', journal, reason: pending(of.name, next.until) }
      case 'wait-for-list':
        return { kind: 'waits', journal, reason: next.fault }
      default:
        return { kind: 'stopped', journal, reason: next.fault }
    }
  }
}

/** What this walk has found out so far. */
type CameOf = Pick<WriteFacts, 'looks' | 'eligibility' | 'sent' | 'duplicatesRemoved'>

function factsOf(
  { ports, settings, name, isFirst }: Walk,
  action: Action,
  journal: Journal,
): Omit<WriteFacts, keyof CameOf> {
  return {
    isRemote: action.isRemote,
    mayDuplicate: action.removeDuplicates !== undefined,
    isFirst,
    intent: openIntent(journal, name),
    now: ports.clock.now(),
    serverNow: ports.github.serverTime(),
    settleMs: settings.policy.settleMs,
  }
}

/** The open intent of an action; one of another action, which is not wanted any more, says nothing about it. */
function openIntent({ intent }: Journal, name: PublishAction): Intent | null {
  return intent?.stage === name ? intent : null
}

function inputOf({ ports, publication, name }: Walk, journal: Journal): ActionInput {
  const base = journal.base ?? { storePath: '', branch: '', oid: '' }
  const { git, github } = ports
  return { git, github, journal, publication, base, intent: openIntent(journal, name) }
}

/** Sends a write under its intent. When it certainly came to nothing, what an earlier try may have done stays open. */
async function send(
  of: Walk,
  action: Action,
  { before, intended }: Readonly<{ before: Journal; intended: Journal }>,
  seen: Absent,
): Promise<Sent> {
  try {
    return await action.perform(inputOf(of, intended), seen)
  } catch (thrown) {
    if (action.isRemote && effectOf(thrown) === 'none') save(of, before)
    throw thrown
  }
}

function withIntent({ ports, settings, name }: Walk, journal: Journal): Journal {
  const now = ports.clock.now()
  const windowMs = name === 'pushed' ? settings.pushTimeoutMs : LIMITS.intentMs
  return {
    ...journal,
    intent: {
      stage: name,
      attempt: (openIntent(journal, name)?.attempt ?? 0) + 1,
      serverTime: toTimestamp(ports.github.serverTime() ?? now),
      deadlineAt: toTimestamp(now + windowMs),
      bootId: ports.bootId,
      answered: null,
    },
  }
}

/** From now on the time is counted in which the first of two writes may still come to light. */
function withAnswer({ ports, name }: Walk, journal: Journal, answered: string): Journal {
  const intent = openIntent(journal, name)
  const deadlineAt = toTimestamp(ports.clock.now())
  return { ...journal, intent: intent === null ? null : { ...intent, deadlineAt, answered } }
}

function recorded(journal: Journal, name: PublishAction, marker: string): Journal {
  const markers = { ...journal.markers, [name]: marker }
  return { ...journal, markers, intent: null, notBefore: null, trouble: null, adoptions: 0 }
}

function pending(stage: PublishAction, until: number): Fault {
  return fault('publish/pending', { stage, until: toTimestamp(until) })
}

/**
 * Writes the journal, unless another process has taken the run over: its claim is another file then, or its journal
 * has another epoch (PROTOCOLS, Adoption). Faults: state/claim-mismatch.
 */
function save({ ports, settings }: Walk, journal: Journal): Journal {
  const epoch = ports.journals.read(journal.runId)?.epoch
  if (!ports.claim.isCurrent() || epoch !== journal.epoch) {
    throw fault('state/claim-mismatch', {
      run: journal.runId,
      issue: formatIssue(journal.key),
      found: `epoch ${epoch ?? 'unknown'} instead of ${journal.epoch}`,
    })
  }
  const owned: Journal = {
    ...journal,
    ownedUntil: toTimestamp(ports.clock.now() + settings.stepMs),
  }
  ports.journals.write(owned)
  return owned
}
