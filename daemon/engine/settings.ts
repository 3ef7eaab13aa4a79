import type { RepositoryName } from '../core/issue-key.ts'
import type { TriggerLabels } from '../core/labels.ts'
import type { PublishPolicy } from '../core/publish-policy.ts'
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
}>

/** What one run needs of the configuration. */
export type RunSettings = Readonly<{
  triggers: TriggerLabels
  retry: RetryPolicy
  policy: PublishPolicy
  pushTimeoutMs: number
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
