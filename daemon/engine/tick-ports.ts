import type { CircuitPolicy } from '../core/circuits.ts'
import type { Capacity } from '../core/eligible-entries.ts'
import type { Garbage } from '../core/garbage.ts'
import type { IssueKey, RepositoryName } from '../core/issue-key.ts'
import type { RecordedProcess } from '../core/journal.ts'
import type { TriggerLabels } from '../core/labels.ts'
import type { RateLimit } from '../core/meta.ts'
import type { Claim, Claims, Clock, Git, GitHub, Journals, Log, Store } from '../core/ports.ts'
import type { RetentionPolicy } from '../core/retention.ts'
import type { RetryPolicy } from '../core/transitions.ts'
import type { PublishPolicy } from '../publish/validate-tree.ts'
import type { StateLayout } from '../state/layout.ts'

/** What a tick needs of the configuration. */
export type TickSettings = Readonly<{
  repositories: readonly RepositoryName[]
  /** Also whatever the token may reach. */
  discover: boolean
  triggers: TriggerLabels
  capacity: Capacity
  /** `max_issues_per_tick`; 0 = no limit. */
  maxClaims: number
  pollIntervalMs: number
  dryRun: boolean
  retry: RetryPolicy
  circuits: CircuitPolicy
  /** No step of a run may take longer (milliseconds); see `Journal.ownedUntil`. */
  longestStepMs: number
  retention: RetentionPolicy
}>

/** What one run needs of the configuration. */
export type RunSettings = Readonly<{
  triggers: TriggerLabels
  retry: RetryPolicy
  circuits: CircuitPolicy
  policy: PublishPolicy
  /** `existing_pr`. */
  existingPull: 'skip' | 'ignore'
  /** `archive_on_retry`. */
  archivesTrees: boolean
  pushTimeoutMs: number
  /** What a step with a few requests and calls of git takes at the very most; see `Journal.ownedUntil`. */
  stepMs: number
  worker: Readonly<{
    command: readonly [string, ...string[]]
    instruction: string
    timeoutMs: number
    completionGraceMs: number
    stallMs: number
    transcriptMaxBytes: number
    environmentAllowlist: readonly string[]
  }>
  trust: Readonly<{ trustedAuthors: readonly string[]; ignoredAuthors: readonly RegExp[] }>
}>

/** Starts a detached runner for a claimed run and closes our copy of the claim (P§2). */
export type StartRunner = (claim: Claim, runId: string) => Promise<void>

/** Everything a tick works with. */
export type TickPorts = Readonly<{
  clock: Clock
  log: Log
  store: Store
  journals: Journals
  claims: Claims
  github: GitHub
  git: Git
  garbage: Garbage
  layout: StateLayout
  settings: TickSettings
  /** Finds what every runner needs, the token, so that nothing is claimed without it. Faults: token/*. */
  prepareStart: () => Promise<void>
  startRunner: StartRunner
  /** Ends what a dead runner has left running, such as a push (P§1). */
  endOrphans: (process: RecordedProcess) => void
  /** Kills the owner of a run that holds its claim beyond its time; false = the claim stays held (P§1). */
  endOwner: (key: IssueKey, owner: RecordedProcess | null) => Promise<boolean>
  /** Asks the supervisor of a run to end its worker. */
  cancelWorker: (runId: string) => void
  newRunId: () => string
  /** What GitHub's answers to this process said about themselves; null = none came, or not said. */
  lastAnswer: () => Readonly<{ status: number | null; rate: RateLimit | null }>
  /** The build that this tick belongs to; a run keeps it. */
  build: string
  /** Our clock; nothing new is begun after it. */
  deadlineAt: number
  /** Aborts when the tick is asked to leave: it ends the step in hand and begins no other. */
  signal: AbortSignal
}>

/** Whether nothing new may be begun: the time is over, or we were asked to leave. */
export function mustEnd({ clock, deadlineAt, signal }: TickPorts): boolean {
  return signal.aborted || clock.now() >= deadlineAt
}

/** What a part of a tick met, per repository or issue; it never stops the others. */
export type TickProblem = Readonly<{ where: string; thrown: unknown }>
