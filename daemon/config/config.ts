import type { RepositoryName } from '../core/issue-key.ts'
import type { TriggerLabels } from '../core/labels.ts'
import type { ApiBase } from './api-base.ts'
import type { Locations } from './resolve-path.ts'
import type { ConfigFile } from './schema.ts'
import type { Argv } from './worker-command.ts'

/**
 * The configuration as the program uses it: complete, checked, paths absolute, lists parsed. A field
 * carries the name of its key (schema.ts describes it); what a key became is said here.
 */
export type Config = Locations &
  Readonly<{
    watchedRepos: readonly RepositoryName[]
    discover: boolean
    discoveryMaxPages: number
    /** ticket_label_code and ticket_label_investigation. */
    triggerLabels: TriggerLabels
    pollIntervalSeconds: number
    workerParallelism: number
    /** 0 = no limit. */
    maxRunsPerRepo: number
    /** 0 = no limit. */
    maxIssuesPerTick: number
    existingPr: ConfigFile['existing_pr']

    /** Secret, and only one of the places a token can come from: use `resolveToken`. */
    githubToken: string | null
    apiBase: ApiBase
    httpTimeoutSeconds: number

    workerCommand: Argv
    workerInstruction: string
    workerTimeoutSeconds: number
    /** 0 = never. */
    workerCompletionGraceSeconds: number
    /** 0 = never. */
    workerStallSeconds: number
    drainTimeoutSeconds: number
    /** All attempts, the first included. */
    maxRetriesPerIssue: number
    retryBackoffSeconds: number
    transcriptMaxBytes: number
    workerEnvAllowlist: readonly string[]
    feedbackAuthorAllowlist: readonly string[]
    commentIgnorePatterns: readonly RegExp[]
    executorMode: ConfigFile['executor_mode']

    /** After CADUCEUS_DRY_RUN. */
    dryRun: boolean
    commentForbiddenStrings: readonly string[]
    closeIssue: ConfigFile['close_issue']
    removeLabelOnCompletion: boolean
    publishSettleSeconds: number
    protectedPaths: readonly string[]
    maxChangedFiles: number
    maxDiffBytes: number
    maxFileBytes: number

    stateBackend: ConfigFile['state_backend']
    gitTimeoutSeconds: number
    runRetentionDays: number
    worktreeGcOlderThanDays: number
    worktreeGcDisabled: boolean
    archiveOnRetry: boolean
    atticRetentionDays: number

    circuitFailureThreshold: number
    circuitBackoffSeconds: readonly number[]
    circuitOpenIntervalSeconds: number
    circuitMaxDegradedSeconds: number
  }>
