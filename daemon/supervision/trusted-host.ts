import type {
  Executor,
  LaunchOutcome,
  LaunchRequest,
  SupervisedRun,
  SupervisionEnd,
  Watching,
} from '../core/executor.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import { type Launch, SUPERVISOR_FDS } from '../core/supervision-files.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { closeDescriptor, openToAppend } from '../sys/files.ts'
import { isLocked, type KernelLock, tryLock } from '../sys/kernel-lock.ts'
import { endLockHolder } from '../sys/lock-holder.ts'
import { spawnDetached } from '../sys/spawn-detached.ts'
import {
  pathOf,
  readExit,
  readLaunch,
  readStarted,
  reapRun,
  writeCancel,
  writeLaunch,
} from './control-run.ts'

/** Runs workers as processes of this host and user (design §7, `executor_mode: trusted_host`). */
export function trustedHost(program: SupervisorProgram): Executor {
  const { clock } = program
  return {
    launch: (request) => startSupervisor(program, request),
    watch: (run, watching) => watchSupervisor(clock, run, watching),
    cancel: writeCancel,
    killSupervisor: (run) =>
      endLockHolder(clock, pathOf(run, 'supervisorLock'), readStarted(run)?.supervisor ?? null),
    reap: (run) => reapRun(clock, run),
  }
}

export type SupervisorProgram = Readonly<{
  clock: Clock
  /** Program and leading arguments of the supervisor, of the build that owns the run (design §4). */
  argv: readonly [string, ...string[]]
  /** The supervisor's own, whole environment: nothing in it may be secret. */
  environment: Readonly<Record<string, string>>
  /** Where it says why it refused a run; null = nowhere. */
  logPath: string | null
}>

/**
 * Starts the supervisor of a run. Its lock is taken here and handed over with the spawn, so there is
 * no moment at which the run looks dead (P§2). Whether it came to start a worker is told by watching.
 * Faults: sys/io, sys/spawn-failed, sys/process-timeout.
 */
export async function startSupervisor(
  program: SupervisorProgram,
  request: LaunchRequest,
): Promise<LaunchOutcome> {
  const lock = tryLock(pathOf(request, 'supervisorLock'))
  if (lock === null) return { kind: 'already-launched' }
  try {
    const wasStarted = readStarted(request) !== null || readExit(request) !== null
    if (wasStarted) return { kind: 'already-launched' }
    writeLaunch(request, launchOf(request, program.clock.now()))
    return await spawnWith(program, request, lock)
  } finally {
    lock.close()
  }
}

async function spawnWith(
  { argv, environment, logPath }: SupervisorProgram,
  request: LaunchRequest,
  lock: KernelLock,
): Promise<LaunchOutcome> {
  const log = logPath === null ? null : openToAppend(logPath)
  try {
    await spawnDetached({
      argv: [...argv, request.directory],
      env: environment,
      stdio: ['ignore', log ?? 'ignore', log ?? 'ignore', lock.fd],
      input: { fd: SUPERVISOR_FDS.environment, text: JSON.stringify(request.environment) },
    })
    return { kind: 'launched' }
  } finally {
    if (log !== null) closeDescriptor(log)
  }
}

/** What may stand in a file: everything but the environment, which is given over a pipe. */
function launchOf(request: LaunchRequest, now: number): Launch {
  return {
    runId: request.runId,
    argv: request.argv,
    treePath: request.treePath,
    resultPath: request.resultPath,
    transcriptPath: request.transcriptPath,
    transcriptMaxBytes: request.transcriptMaxBytes,
    timeoutMs: request.timeoutMs,
    completionGraceMs: request.completionGraceMs,
    stallMs: request.stallMs,
    launchedAt: toTimestamp(now),
  }
}

const PROBE_INTERVAL_MS = 150
/** From the spawn to started.json, on a machine that is very busy. */
const START_BOUND_MS = 60_000
/** Beyond the deadline: ending the processes, then syncing, on a slow disk. */
const END_BOUND_MS = LIMITS.termGraceMs + LIMITS.killBoundMs + 60_000
/** A supervisor that has reported has nothing more to do. */
const LEAVE_WAIT_MS = 2000

/**
 * Waits for the end of a launched run, through its files alone, so that it does not matter who started
 * it. A report outranks the lock; the lock outranks the time. Faults: sys/io.
 */
export async function watchSupervisor(
  clock: Clock,
  run: SupervisedRun,
  watching: Watching = {},
): Promise<SupervisionEnd> {
  const { onHeartbeat, signal } = watching
  let heartbeatAt = Number.NEGATIVE_INFINITY
  for (;;) {
    const now = clock.now()
    if (now - heartbeatAt >= LIMITS.heartbeatMs) {
      heartbeatAt = now
      onHeartbeat?.()
    }
    const end = probe(run, now)
    if (end?.kind === 'ended') await waitUntilLeft(clock, run, end)
    if (end !== null) return end
    if (signal?.aborted === true) return { kind: 'unwatched' }
    await clock.sleep(PROBE_INTERVAL_MS, signal)
  }
}

function probe(run: SupervisedRun, now: number): SupervisionEnd | null {
  // In this order: a report written between the two looks would else be taken for a death.
  const isHeld = isLocked(pathOf(run, 'supervisorLock'))
  const report = readExit(run)
  if (report !== null) return { kind: 'ended', report }
  if (!isHeld) {
    const workerStarted = readStarted(run) !== null
    return { kind: 'vanished', launched: readLaunch(run) !== null, workerStarted }
  }
  return now > latestEnd(run, now) ? { kind: 'overdue' } : null
}

/** When the supervisor has to be through at the latest. */
function latestEnd(run: SupervisedRun, now: number): number {
  const started = readStarted(run)
  if (started !== null) return fromTimestamp(started.deadlineAt) + END_BOUND_MS
  const launch = readLaunch(run)
  return (launch === null ? now : fromTimestamp(launch.launchedAt)) + START_BOUND_MS
}

/** So that nobody meets it on its way out; with processes left it stays, holding its lock (P§4). */
async function waitUntilLeft(
  clock: Clock,
  run: SupervisedRun,
  { report }: Extract<SupervisionEnd, { kind: 'ended' }>,
): Promise<void> {
  if (report.unkillable.length > 0) return
  const until = clock.now() + LEAVE_WAIT_MS
  while (clock.now() < until && isLocked(pathOf(run, 'supervisorLock')))
    await clock.sleep(PROBE_INTERVAL_MS / 10)
}
