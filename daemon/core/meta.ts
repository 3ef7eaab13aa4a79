import { LIMITS } from './limits.ts'
import type { RecordedError } from './queue-state.ts'
import { fromTimestamp, type Timestamp } from './timestamp.ts'

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
export type RepositoryState = Readonly<{
  /**
   * GitHub's clock at the last complete poll by both labels. Polls in between ask only for changes
   * since then, by an address that stays the same and so costs nothing while nothing changes.
   */
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

const COALESCE_MS = 3_600_000

/**
 * The ring of things people should know that are no faults: at most 20, messages at most 256 bytes, and
 * the same code for the same issue at most once an hour (R§3.6). The same list comes back when nothing
 * is new, so that nothing is written.
 */
export function addDiagnostics(
  ring: readonly Diagnostic[],
  found: readonly Diagnostic[],
): readonly Diagnostic[] {
  let all = ring
  for (const diagnostic of found) {
    const isKnown = all.some((known) => isRepeat(known, diagnostic))
    if (!isKnown) all = [...all, shorten(diagnostic)].slice(-LIMITS.diagnostics)
  }
  return all
}

function isRepeat(known: Diagnostic, diagnostic: Diagnostic): boolean {
  return (
    known.code === diagnostic.code &&
    known.issue === diagnostic.issue &&
    Math.abs(fromTimestamp(diagnostic.at) - fromTimestamp(known.at)) < COALESCE_MS
  )
}

function shorten(diagnostic: Diagnostic): Diagnostic {
  const bytes = new TextEncoder().encode(diagnostic.message)
  if (bytes.length <= LIMITS.diagnosticMessageBytes) return diagnostic
  const cut = new TextDecoder().decode(bytes.subarray(0, LIMITS.diagnosticMessageBytes - 3))
  return { ...diagnostic, message: `${cut.replace(/\uFFFD+$/u, '')}…` }
}
