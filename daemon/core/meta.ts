import type { RecordedError } from './queue.ts'
import type { Timestamp } from './timestamp.ts'

/** How a tick ended. */
export const TICK_OUTCOMES = {
  processed: { exitCode: 0, meaning: 'runs were started or carried on' },
  idle304: { exitCode: 0, meaning: 'GitHub reported no change' },
  idle_empty: { exitCode: 0, meaning: 'nothing to do' },
  skipped_concurrent: { exitCode: 0, meaning: 'another tick was planning' },
  skipped_cadence: { exitCode: 0, meaning: 'polled too recently' },
  rate_limited: { exitCode: 0, meaning: 'GitHub asked us to wait' },
  cancelled: { exitCode: 0, meaning: 'stopped by a signal' },
  failed: { exitCode: 1, meaning: 'the tick itself failed' },
} as const satisfies Record<string, { exitCode: 0 | 1; meaning: string }>

export type TickOutcome = keyof typeof TICK_OUTCOMES

/** What is remembered about polling one repository. */
export type RepositoryMemory = Readonly<{
  /** Changes before this (GitHub's clock) have been seen; null = never polled. */
  since: Timestamp | null
  /** Last poll by both labels, which finds everything whatever was missed. */
  sweptAt: Timestamp | null
  /** Why it is not polled, or why the last poll failed. */
  problem: RecordedError | null
}>

export type Diagnostic = Readonly<{
  at: Timestamp
  code: string
  issue: string | null
  message: string
}>

export type RateLimit = Readonly<{
  limit: number
  remaining: number
  resetAt: Timestamp
  observedAt: Timestamp
}>

/** Cadence, limits and what ticks leave for people to read (design §5, R§3.6). */
export type Meta = Readonly<{
  installationId: string
  lastTickStarted: Timestamp | null
  lastTickFinished: Timestamp | null
  lastPollStarted: Timestamp | null
  lastOutcome: TickOutcome | null
  lastHttpStatus: number | null
  rateLimit: RateLimit | null
  /** Until when no request may be made, by any process. */
  wait: Readonly<{ kind: 'primary' | 'secondary' | 'retry-after'; until: Timestamp }> | null
  lastError: RecordedError | null
  /** Entries in needs_attention that the operator was already told about, by issue id. */
  repositories: Readonly<Record<string, RepositoryMemory>>
  diagnostics: readonly Diagnostic[]
}>
