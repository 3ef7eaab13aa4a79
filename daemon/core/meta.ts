import type { Diagnostic } from './diagnostics.ts'
import type { RecordedError } from './queue-state.ts'
import type { TickOutcome } from './tick-outcomes.ts'
import type { Timestamp } from './timestamp.ts'

/** What is stored about polling one repository. */
export type RepositoryState = Readonly<{
  /**
   * GitHub's clock at the last full poll, which lists both labels. Polls in between ask for changes since then,
   * by an address that stays the same, so an unchanged repository costs one 304.
   */
  sweptAt: Timestamp | null
  /** Why it is not polled, or why the last poll failed. */
  problem: RecordedError | null
}>

export type RateLimit = Readonly<{
  limit: number
  remaining: number
  resetAt: Timestamp
  observedAt: Timestamp
}>

/** Cadence, limits, and what ticks record for people to read. */
export type Meta = Readonly<{
  installationId: string
  lastTickStarted: Timestamp | null
  lastTickFinished: Timestamp | null
  lastPollStarted: Timestamp | null
  /** When garbage was last collected. */
  lastSweptAt: Timestamp | null
  lastOutcome: TickOutcome | null
  lastHttpStatus: number | null
  rateLimit: RateLimit | null
  /** Until when no request may be made, by any process. */
  wait: Readonly<{ kind: 'primary' | 'secondary' | 'retry-after'; until: Timestamp }> | null
  lastError: RecordedError | null
  /** Entries whose need for attention was printed, each with its `updatedAt` at that time. */
  attentionTold: Readonly<Record<string, Timestamp>>
  repositories: Readonly<Record<string, RepositoryState>>
  diagnostics: readonly Diagnostic[]
}>

/** @param installationId a UUID of version 4, made once per state directory */
export function newMeta(installationId: string): Meta {
  return {
    installationId,
    lastTickStarted: null,
    lastTickFinished: null,
    lastPollStarted: null,
    lastSweptAt: null,
    lastOutcome: null,
    lastHttpStatus: null,
    rateLimit: null,
    wait: null,
    lastError: null,
    attentionTold: {},
    repositories: {},
    diagnostics: [],
  }
}
