import type { SupervisedRun, SupervisionEnd, Watching } from '../core/executor.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { pathOf, readExit, readLaunch, readStarted } from './control-run.ts'

const PROBE_INTERVAL_MS = 150
/** From the spawn to started.json, on a machine that is very busy. */
const START_BOUND_MS = 60_000
/** Beyond the deadline: ending the processes, then syncing, on a slow disk. */
const END_BOUND_MS = LIMITS.termGraceMs + LIMITS.killBoundMs + 60_000
/** A supervisor that has reported has nothing more to do. */
const EXIT_WAIT_MS = 2000

/**
 * Waits for the end of a launched run, through its files alone, so that it does not matter which process
 * started it. A report outranks the lock; the lock outranks the time. Faults: sys/io.
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
    if (end?.kind === 'ended') await waitUntilGone(clock, run, end)
    if (end !== null) return end
    if (signal?.aborted === true) return { kind: 'unwatched' }
    await clock.sleep(PROBE_INTERVAL_MS, signal)
  }
}

function probe(run: SupervisedRun, now: number): SupervisionEnd | null {
  // In this order: a report written between the two reads would else be taken for a death.
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

/** So that no later step finds it on its way out; with processes remaining it stays, holding its lock. */
async function waitUntilGone(
  clock: Clock,
  run: SupervisedRun,
  { report }: Extract<SupervisionEnd, { kind: 'ended' }>,
): Promise<void> {
  if (report.unkillable.length > 0) return
  const until = clock.now() + EXIT_WAIT_MS
  while (clock.now() < until && isLocked(pathOf(run, 'supervisorLock')))
    await clock.sleep(PROBE_INTERVAL_MS / 10)
}
