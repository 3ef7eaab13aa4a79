import type { CircuitPolicy } from '../core/circuits.ts'
import type { RepositoryName } from '../core/issue-key.ts'
import type { TriggerLabels } from '../core/labels.ts'
import type { PublishPolicy } from '../core/publish-policy.ts'
import type { RetentionPolicy } from '../core/retention.ts'
import type { Capacity } from '../core/scheduling.ts'
import type { RetryPolicy } from '../core/transitions.ts'

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
