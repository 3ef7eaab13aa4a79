import type { IssueKey } from './issue-key.ts'
import type { Ticket } from './labels.ts'
import type { Timestamp } from './timestamp.ts'
import type { PhaseEvent } from './transitions.ts'

/** `isPaid`: the worker has succeeded, so the run is not given up for a fault that may pass. */
type StagePolicy = Readonly<{ isPaid: boolean; meaning: string }>

/**
 * How far a run has come. Each name is written only after what it says is durable, so whoever
 * takes the run over knows what need not be done again (P§2, P§3).
 */
export const RUN_STAGES = {
  starting: { isPaid: false, meaning: 'claimed; no runner has taken over yet' },
  owned: { isPaid: false, meaning: 'a runner holds the claim' },
  launching: {
    isPaid: false,
    meaning: 'the tree is ready; started.json tells whether a worker was started',
  },
  finished: {
    isPaid: true,
    meaning: 'the worker succeeded and its result is archived; nothing may lose it now',
  },
  publishing: { isPaid: true, meaning: 'every outgoing text is pinned' },
  ended: {
    isPaid: true,
    meaning: 'the outcome is decided; only the queue and the clean-up remain',
  },
  settled: { isPaid: true, meaning: 'the queue knows; nothing remains to be done' },
} as const satisfies Record<string, StagePolicy>

export type RunStage = keyof typeof RUN_STAGES

/** The publish stages, in order (design §9). */
export const PUBLISH_ACTIONS = [
  'committed',
  'pushed',
  'pr_created',
  'commented',
  'label_removed',
  'closed',
] as const satisfies readonly string[]

export type PublishAction = (typeof PUBLISH_ACTIONS)[number]

/**
 * What is published, and by which stages. A success without changes is told on the issue and nothing
 * more; so is that something on GitHub contradicts the run (`notice`; design §6, §9).
 */
export const PUBLISH_PLANS = {
  code: ['committed', 'pushed', 'pr_created', 'commented', 'label_removed', 'closed'],
  findings: ['commented', 'label_removed', 'closed'],
  'no-changes': ['commented'],
  notice: ['commented'],
} as const satisfies Record<string, readonly PublishAction[]>

export type PublishPlan = keyof typeof PUBLISH_PLANS

/** A process as it was when recorded; used to end it, never to judge that it lives (P§1). */
export type RecordedProcess = Readonly<{
  pid: number
  startTicks: number
  bootId: string
  session: number
}>

/**
 * A write that may or may not have taken effect (P§3). It is cleared by its success or by proof that
 * nothing happened; left open it forbids a second try until the settle time has passed.
 */
export type Intent = Readonly<{
  stage: PublishAction
  attempt: number
  /** GitHub's clock when it was about to be sent. */
  serverTime: Timestamp
  /** Our clock; the request is certainly over by then. */
  deadlineAt: Timestamp
  bootId: string
  /** The marker that a repeated try came back with, while a twin of the first is waited for. */
  answered: string | null
}>

/** Every outgoing text and date, decided before the first publish stage (design §9). */
export type Publication = Readonly<{
  plan: PublishPlan
  commitMessage: string
  /** Seconds since the epoch; makes the commit's object id a function of the journal. */
  commitDateSeconds: number
  pullTitle: string
  pullBody: string
  comment: string
  actorId: number
  actorLogin: string
  treeOid: string | null
  changedFiles: number
}>

/** A text without the secrets in it: they stood between the parts. */
export type TextParts = readonly string[]

/**
 * The operator's git settings about their remote as they were before the worker: where to go, what to run.
 * What is secret in them is not kept; git/captured-remote.ts says how it is found again.
 */
export type CapturedRemote = Readonly<{
  /** The operator's clone; a relative address is meant from there. */
  clonePath: string
  /** In git's order, in which later ones win. */
  settings: readonly Readonly<{ key: TextParts; value: TextParts }>[]
}>

/** null = nothing captured yet, or a human has reset the run since: what is configured now counts. */
export type RunRemote = CapturedRemote | null

export type Journal = Readonly<{
  runId: string
  key: IssueKey
  ticket: Ticket
  generation: number
  /** The run of this issue before this one; its tree is kept until this one makes its own. */
  previousRunId: string | null
  /** 1 for the first worker attempt. */
  attempt: number
  dryRun: boolean
  /** The build that began the run and must finish it (design §4). */
  build: string
  createdAt: Timestamp
  /** Raised by every adoption; an owner that finds another number has lost the run. */
  epoch: number
  /** Times it was taken over since it last came further; an owner that leaves in order sets it to zero. */
  adoptions: number
  stage: RunStage
  branch: string
  base: Readonly<{ storePath: string; branch: string; oid: string }> | null
  /** Durable before the worker exists. */
  remote: RunRemote
  treePath: string
  indexPath: string
  /** The trigger label as the issue spells it. */
  label: string
  /** Id of the newest `labeled` event seen, which this generation answers; null = none was seen. */
  labeledEventId: number | null
  runner: RecordedProcess | null
  /** The owner writes again before this; one that holds its claim longer is stopped or wedged (P§1). */
  ownedUntil: Timestamp | null
  publication: Publication | null
  /** What each finished publish stage left: object id, number or comment id. */
  markers: Readonly<Partial<Record<PublishAction, string>>>
  intent: Intent | null
  /** Nothing is to be done before this. */
  notBefore: Timestamp | null
  /** Failures around us in a row since the worker finished, and since when; null after a stage succeeded. */
  trouble: Readonly<{ count: number; since: Timestamp }> | null
  outcome: PhaseEvent | null
  /** The stage in which a fault ended it, from which it may be resumed; null = it went to its end. */
  endedIn: RunStage | null
}>

/** Who a published commit is by (R§8.2); exempt from the public-voice rule (design §9). */
export const COMMIT_IDENTITY = {
  name: 'Caduceus Daemon',
  email: 'caduceus@daemon.local',
} as const satisfies Record<string, string>
