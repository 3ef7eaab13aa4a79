import type { Config } from '../config/make-config.ts'
import { describeProblem } from '../config/problem.ts'
import { type CircuitPolicy, evaluateCircuit } from '../core/circuits.ts'
import { nextHead } from '../core/eligible-entries.ts'
import { isFault } from '../core/fault.ts'
import { evaluateGate } from '../core/gate.ts'
import { formatIssue, formatRepository, issueId } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { Meta } from '../core/meta.ts'
import type { Phase, QueueEntry, QueueState } from '../core/queue-state.ts'
import { nextStepOf } from '../core/resume.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { openJsonStore } from '../state/json-store.ts'
import { systemClock } from '../sys/clock.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import type { Build } from './build.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { circuitPolicyOf } from './settings-of.ts'
import { bridgeReadiness, type LiveWorker, liveWorkers } from './status-probes.ts'

/** Version of the JSON shape; part of the versioned surface (R§10.5). */
const STATUS_VERSION = '1.0.0'

/** Why there is no report, or only part of one. */
export const STATUS_DIAGNOSTICS = {
  no_state: { exitCode: 3 },
  corrupt_state: { exitCode: 1 },
  corrupt_queue: { exitCode: 1 },
} as const satisfies Record<string, { exitCode: number }>

export type StatusDiagnostic = keyof typeof STATUS_DIAGNOSTICS

/** `status --json` (R§1.5 with W15a, W46 and W59 mended). Times are RFC 3339. */
export type Status = Readonly<{
  app_version: string
  version: string
  state_dir: string
  diagnostic: StatusDiagnostic | null
  /** What the diagnostic is about, one line; null when there is none. */
  message: string | null
  report: StatusReport | null
}>

export type StatusReport = Readonly<{
  version: string
  state_dir: string
  last_tick_started: string | null
  last_tick_finished: string | null
  last_outcome: string | null
  last_http_status: number | null
  next_allowed_poll_at: string | null
  /** Set while GitHub asked us to wait. */
  rate_limited_until: string | null
  phases: Readonly<Record<Phase, number>>
  next_head: string | null
  next_head_earliest_eligibility: string | null
  recent_errors: readonly string[]
  blocked_issues: readonly Readonly<{
    issue_key: string
    blocked_source: string
    blocked_recovery_hint: string
    last_error: string | null
  }>[]
  rate_limit: Readonly<{
    limit: number
    remaining: number
    reset_at: string
    observed_at: string
  }> | null
  live_workers: readonly LiveWorker[]
  diagnostics: readonly Readonly<{
    at: string
    code: string
    issue: string | null
    message: string
  }>[]
  configuration_warnings: readonly string[]
  state_corrupt: boolean
  readiness: Readonly<{ bridge: string; harness: 'not-applicable'; provider: 'not-applicable' }>
  /** What keeps new work from being started; closed ones are not shown. */
  circuits: readonly Readonly<{
    name: string
    state: 'waiting' | 'open' | 'half-open'
    failures: number
    until: string | null
    last_error: string
  }>[]
  pool_state: Readonly<{ running: number; parallelism: number }>
}>

/** Reads, and changes nothing. Faults: config/*, state/format-*, state/stale-schema. */
export function readStatus(build: Build): Status {
  const environment = readEnvironment()
  const { config, warnings } = loadProgramConfig(environment)
  const store = openJsonStore({ clock: systemClock, archiveCorrupt: false }, config.stateDir)
  const head = {
    app_version: build.version,
    version: STATUS_VERSION,
    state_dir: config.stateDir,
  }
  const without = (diagnostic: StatusDiagnostic, message: string): Status => ({
    ...head,
    diagnostic,
    message,
    report: null,
  })
  if (!store.exists()) return without('no_state', 'Nothing has run yet. Run one tick: caduceus run')
  const meta = valueOrCorrupt(() => store.readMeta())
  if (meta.kind === 'corrupt') return without('corrupt_state', meta.message)
  const queue = valueOrCorrupt(() => store.readQueue())
  if (queue.kind === 'corrupt') return without('corrupt_queue', queue.message)
  return {
    ...head,
    diagnostic: null,
    message: null,
    report: reportOf(config, warnings.map(describeProblem), meta.value, queue.value, environment),
  }
}

type Read<T> = Readonly<{ kind: 'read'; value: T }> | Readonly<{ kind: 'corrupt'; message: string }>

function valueOrCorrupt<T>(read: () => T): Read<T> {
  try {
    return { kind: 'read', value: read() }
  } catch (thrown) {
    if (isFault(thrown) && thrown.code === 'state/corrupt') {
      return { kind: 'corrupt', message: `${thrown.message} ${thrown.next}` }
    }
    throw thrown
  }
}

function reportOf(
  config: Config,
  warnings: readonly string[],
  meta: Meta,
  queue: QueueState,
  environment: Readonly<Record<string, string>>,
): StatusReport {
  const now = systemClock.now()
  const gate = evaluateGate(meta, now, config.pollIntervalSeconds * 1000, false)
  const circuits = circuitPolicyOf(config)
  const { head, earliest } = nextHead(queue, now, circuits)
  const entries = Object.values(queue.entries)
  const phases = countPhases(entries)
  return {
    version: STATUS_VERSION,
    state_dir: config.stateDir,
    last_tick_started: meta.lastTickStarted,
    last_tick_finished: meta.lastTickFinished,
    last_outcome: meta.lastOutcome,
    last_http_status: meta.lastHttpStatus,
    next_allowed_poll_at: meta.lastPollStarted === null ? null : toTimestamp(gate.nextPollAt),
    rate_limited_until: gate.limitedUntil === null ? null : toTimestamp(gate.limitedUntil),
    phases,
    next_head: head === null ? null : formatIssue(head.key),
    next_head_earliest_eligibility: earliest === null ? null : toTimestamp(earliest),
    recent_errors: recentErrors(config, meta, entries),
    blocked_issues: blockedIssues(entries),
    rate_limit:
      meta.rateLimit === null
        ? null
        : {
            limit: meta.rateLimit.limit,
            remaining: meta.rateLimit.remaining,
            reset_at: meta.rateLimit.resetAt,
            observed_at: meta.rateLimit.observedAt,
          },
    live_workers: liveWorkers(config.stateDir, entries, now),
    diagnostics: meta.diagnostics,
    configuration_warnings: warnings,
    state_corrupt: false,
    readiness: {
      bridge: bridgeReadiness(config.workerCommand, environment),
      harness: 'not-applicable',
      provider: 'not-applicable',
    },
    circuits: circuitsOf(queue, now, circuits),
    pool_state: { running: phases.in_progress, parallelism: config.workerParallelism },
  }
}

/** All eight, also those at zero. */
function countPhases(entries: readonly QueueEntry[]): Readonly<Record<Phase, number>> {
  const count = (phase: Phase): number => entries.filter((entry) => entry.phase === phase).length
  return {
    awaiting_review: count('awaiting_review'),
    done: count('done'),
    failed: count('failed'),
    in_progress: count('in_progress'),
    needs_attention: count('needs_attention'),
    previewed: count('previewed'),
    queued: count('queued'),
    skipped: count('skipped'),
  }
}

/** Newest first and dated: of the last tick, of repositories, of issues; gone once they are over. */
function recentErrors(
  config: Config,
  meta: Meta,
  entries: readonly QueueEntry[],
): readonly string[] {
  const watched = new Set(config.watchedRepos.map((one) => formatRepository(one).toLowerCase()))
  const ofRepositories = Object.entries(meta.repositories).flatMap(([id, { problem }]) =>
    problem === null || !watched.has(id) ? [] : [{ ...problem, where: id }],
  )
  const ofIssues = entries.flatMap(({ key, lastError, phase }) =>
    lastError === null || phase === 'done' || phase === 'skipped' || phase === 'in_progress'
      ? []
      : [{ ...lastError, where: formatIssue(key) }],
  )
  const known = new Set(ofRepositories.map(({ message }) => message))
  const ofTick =
    meta.lastError === null || known.has(meta.lastError.message)
      ? []
      : [{ ...meta.lastError, where: 'daemon' }]
  return [...ofTick, ...ofRepositories, ...ofIssues]
    .sort((a, b) => (a.at < b.at ? 1 : -1))
    .slice(0, LIMITS.recentErrors)
    .map(({ at, where, message }) => `${at} ${where}: ${message}`)
}

function circuitsOf(
  { circuits }: QueueState,
  now: number,
  policy: CircuitPolicy,
): StatusReport['circuits'] {
  return Object.entries(circuits)
    .flatMap(([name, circuit]) => {
      const { state, until } = evaluateCircuit(circuit, now, policy)
      if (state === 'closed') return []
      const { failures, lastError } = circuit
      const shown = until === null ? null : toTimestamp(until)
      return [{ name, state, failures, until: shown, last_error: lastError.message }]
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function blockedIssues(entries: readonly QueueEntry[]): StatusReport['blocked_issues'] {
  return entries
    .flatMap((entry) =>
      entry.phase !== 'needs_attention' || entry.blocked === null
        ? []
        : [
            {
              issue_key: issueId(entry.key),
              blocked_source: entry.blocked.source,
              blocked_recovery_hint: nextStepOf(entry),
              last_error: entry.lastError?.message ?? null,
            },
          ],
    )
    .sort((a, b) => (a.issue_key < b.issue_key ? -1 : 1))
}
