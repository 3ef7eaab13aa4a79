import type { Config } from '../config/config.ts'
import type { PublishPolicy } from '../core/publish-policy.ts'
import type { RetryPolicy } from '../core/transitions.ts'
import type { RunSettings, TickSettings } from '../engine/settings.ts'

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
  }
}

/** What one run needs of the configuration. */
export function runSettingsOf(config: Config): RunSettings {
  return {
    triggers: config.triggerLabels,
    retry: retryPolicyOf(config),
    policy: publishPolicyOf(config),
    pushTimeoutMs: config.gitTimeoutSeconds * 1000,
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

function retryPolicyOf(config: Config): RetryPolicy {
  return {
    maxAttempts: config.maxRetriesPerIssue,
    backoffSeconds: config.retryBackoffSeconds,
    maxDegradedSeconds: config.circuitMaxDegradedSeconds,
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
