import type { Diagnostic } from './diagnostics.ts'
import type { RecordedError } from './queue-state.ts'
import type { TickOutcome } from './tick-outcomes.ts'
import type { Timestamp } from './timestamp.ts'

/** What is remembered about polling one repository. */
export type RepositoryState = Readonly<{
  /**
   * GitHub's clock at the last complete poll by both labels. Polls in between ask only for changes
   * since then, by an address that stays the same and so costs nothing while nothing changes.
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

/** Cadence, limits and what ticks leave for people to read (design §5, R§3.6). */
export type Meta = Readonly<{
  installationId: string
  lastTickStarted: Timestamp | null
  lastTickFinished: Timestamp | null
  lastPollStarted: Timestamp | null
  /** When it was last looked for what is left over. */
  lastSweptAt: Timestamp | null
  lastOutcome: TickOutcome | null
  lastHttpStatus: number | null
  rateLimit: RateLimit | null
  /** Until when no request may be made, by any process. */
  wait: Readonly<{ kind: 'primary' | 'secondary' | 'retry-after'; until: Timestamp }> | null
  lastError: RecordedError | null
  /** Entries in need of attention that were told about, each by its `updatedAt` then (design §11). */
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
