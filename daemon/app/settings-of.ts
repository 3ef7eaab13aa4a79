import type { Config } from '../config/make-config.ts'
import type { CircuitPolicy } from '../core/circuits.ts'
import { fault } from '../core/fault.ts'
import type { RetentionPolicy } from '../core/retention.ts'
import type { RetryPolicy } from '../core/transitions.ts'
import type { RunSettings, TickSettings } from '../engine/tick-ports.ts'
import type { PublishPolicy } from '../publish/validate-tree.ts'

/** On top of what a step waits for: a busy machine. */
const STEP_SLACK_MS = 120_000
const DAY_MS = 86_400_000

/** Faults: config/executor-unavailable for one that this version does not have. */
export function requireExecutor({ executorMode: mode }: Config): void {
  if (mode !== 'trusted_host') throw fault('config/executor-unavailable', { mode })
}

/** What a tick needs of the configuration; seconds become milliseconds here. */
export function tickSettingsOf(config: Config): TickSettings {
  return {
    repositories: config.watchedRepos,
    discover: config.discover,
    triggers: config.triggerLabels,
    capacity: { parallelism: config.workerParallelism, perRepository: config.maxRunsPerRepo },
    maxClaims: config.maxIssuesPerTick,
    pollIntervalMs: config.pollIntervalSeconds * 1000,
    dryRun: config.dryRun,
    retry: retryPolicyOf(config),
    circuits: circuitPolicyOf(config),
    longestStepMs: longestStepMsOf(config),
    retention: retentionPolicyOf(config),
  }
}

/** What one run needs of the configuration. */
export function runSettingsOf(config: Config): RunSettings {
  return {
    triggers: config.triggerLabels,
    retry: retryPolicyOf(config),
    circuits: circuitPolicyOf(config),
    policy: publishPolicyOf(config),
    existingPull: config.existingPr,
    archivesTrees: config.archiveOnRetry,
    pushTimeoutMs: config.gitTimeoutSeconds * 1000,
    stepMs: stepMsOf(config),
    worker: {
      command: config.workerCommand,
      instruction: config.workerInstruction,
      timeoutMs: config.workerTimeoutSeconds * 1000,
      completionGraceMs: config.workerCompletionGraceSeconds * 1000,
      stallMs: config.workerStallSeconds * 1000,
      transcriptMaxBytes: config.transcriptMaxBytes,
      environmentAllowlist: config.workerEnvAllowlist,
    },
    trust: {
      trustedAuthors: config.feedbackAuthorAllowlist,
      ignoredAuthors: config.commentIgnorePatterns,
    },
  }
}

/** With slack, because an owner that is alive must not seem overdue when the clock is set back a little. */
function longestStepMsOf(config: Config): number {
  const stepMs = stepMsOf(config)
  return Math.max(3 * stepMs, config.workerTimeoutSeconds * 1000 + stepMs) + STEP_SLACK_MS
}

function stepMsOf({ gitTimeoutSeconds, httpTimeoutSeconds }: Config): number {
  return (2 * gitTimeoutSeconds + 8 * httpTimeoutSeconds) * 1000 + STEP_SLACK_MS
}

function retryPolicyOf(config: Config): RetryPolicy {
  return {
    maxAttempts: config.maxRetriesPerIssue,
    backoffSeconds: config.retryBackoffSeconds,
    maxDegradedSeconds: config.circuitMaxDegradedSeconds,
  }
}

/** Also for `status`, which shows what waits for a circuit. */
export function circuitPolicyOf(config: Config): CircuitPolicy {
  return {
    threshold: config.circuitFailureThreshold,
    backoffSeconds: config.circuitBackoffSeconds,
    openSeconds: config.circuitOpenIntervalSeconds,
  }
}

function retentionPolicyOf(config: Config): RetentionPolicy {
  return {
    runMs: config.runRetentionDays * DAY_MS,
    treeMs: config.worktreeGcDisabled ? null : config.worktreeGcOlderThanDays * DAY_MS,
    atticMs: config.atticRetentionDays * DAY_MS,
  }
}

function publishPolicyOf(config: Config): PublishPolicy {
  return {
    forbiddenStrings: config.commentForbiddenStrings,
    closeIssue: config.closeIssue,
    removeLabel: config.removeLabelOnCompletion,
    settleMs: config.publishSettleSeconds * 1000,
    protectedPaths: config.protectedPaths,
    maxChangedFiles: config.maxChangedFiles,
    maxDiffBytes: config.maxDiffBytes,
    maxFileBytes: config.maxFileBytes,
  }
}
