import type { EndReason } from '../core/end-reasons.ts'
import { describeThrown, isFault } from '../core/fault.ts'
import type { Clock } from '../core/ports.ts'
import type { Started } from '../core/supervision-files.ts'
import { fromTimestamp } from '../core/timestamp.ts'
import { settlesWithin } from '../sys/bounded-waits.ts'
import type { Drain } from '../sys/drain-descriptor.ts'
import { onSignals } from '../sys/on-signals.ts'
import { processSource } from '../sys/process-source.ts'
import type { WorkerExit, WorkerProcess } from '../sys/worker-process.ts'
import type { Activity } from './activity.ts'
import { decideEnd } from './decide-end.ts'
import { endProcesses } from './end-processes.ts'
import type { PreparedWorker } from './prepare-worker.ts'
import { ownProcessTree, type ProcessTree } from './process-tree.ts'
import { reportEnd } from './report-end.ts'
import { isCancelled, writeStarted } from './report-files.ts'

/** Between probes of control file, time and processes. */
const PROBE_INTERVAL_MS = 250
/** After the last process is gone only a stranger can hold the pipe; it is not waited for longer. */
const DRAIN_WAIT_MS = 1000
/** Where the worker is Node's: for it to notice the end of one that is dead already. */
const COLLECT_WAIT_MS = 5000
/** Between attempts on processes that cannot be ended. */
const RETRY_MS = 10_000

export type Scene = Readonly<{
  clock: Clock
  directory: string
  run: PreparedWorker
  started: Started
  activity: Activity
  drain: Drain
  /** Aborts when the supervisor itself is asked to end. */
  stop: AbortSignal
}>

type Supervised = Readonly<{
  worker: WorkerProcess
  tree: ProcessTree
  exit: () => WorkerExit | null
  /** Aborts when there is a reason to probe at once. */
  wake: AbortSignal
}>

/** Sees a running worker to its end, ends its descendants, and reports. Faults: sys/io. */
export async function superviseWorker(scene: Scene, worker: WorkerProcess): Promise<void> {
  const { clock, drain, stop } = scene
  const state: { exit: WorkerExit | null } = { exit: null }
  const ended = new AbortController()
  const exited = worker.exited.then((exit) => {
    state.exit = exit
    return ended.abort()
  })
  const tree = ownProcessTree(
    { ...worker, isCollected: () => state.exit !== null },
    scene.run.isSubreaper,
  )
  const wake = AbortSignal.any([stop, ended.signal])
  const ignore = onSignals(['SIGCHLD'], () => reapQuietly(tree))
  try {
    const end = await watchWorker(scene, { worker, tree, exit: () => state.exit, wake })
    const ending = { clock, tree, workerPid: worker.pid }
    const { descendants, unkillable } = await endProcesses(ending)
    if (unkillable.length === 0) await settlesWithin(clock, exited, COLLECT_WAIT_MS)
    await settlesWithin(clock, drain.ended, DRAIN_WAIT_MS)
    drain.stop()
    const { exitCode = null, signal = null } = state.exit ?? {}
    await reportEnd(scene, { ...end, exitCode, signal, descendantsKilled: descendants, unkillable })
    // The lock stays with us as long as a process of the run can still act (PROTOCOLS, Ending processes).
    for (let remaining = unkillable; remaining.length > 0; ) {
      await clock.sleep(RETRY_MS)
      remaining = (await endProcesses(ending)).unkillable
    }
  } finally {
    ignore()
  }
}

/** The next probe reaps again and reports a fault that stays; here it would end the supervisor. */
function reapQuietly(tree: ProcessTree): void {
  try {
    tree.reap()
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
  }
}

type End = Readonly<{ reason: EndReason; detail: string | null }>

/** Waits for the worker's own end or for a reason to end it; the first one found is the reason. */
async function watchWorker(scene: Scene, supervised: Supervised): Promise<End> {
  const { clock, run, activity, started } = scene
  const deadlineAt = fromTimestamp(started.deadlineAt)
  try {
    recordWorker(scene, supervised.worker)
    for (;;) {
      supervised.tree.reap()
      const detail = run.transcript.failure()
      if (supervised.exit() !== null) return { reason: 'exited', detail }
      const seen = {
        now: clock.now(),
        deadlineAt,
        cancelRequested: isCancelled(scene.directory),
        signalled: scene.stop.aborted,
        transcriptFailed: detail !== null,
        ...activity.probe(),
      }
      const reason = decideEnd(seen, run.launch)
      if (reason !== null) return { reason, detail }
      await clock.sleep(PROBE_INTERVAL_MS, supervised.wake)
    }
  } catch (thrown) {
    // A paid worker must not end without a report, whatever the fault was.
    return { reason: 'supervisor-failed', detail: describeThrown(thrown) }
  }
}

/** Adds the worker to started.json, for a reaper that comes after us. */
function recordWorker({ directory, started }: Scene, { pid }: WorkerProcess): void {
  // It may have ended already; it is not collected before the next turn, so it is still listed.
  const entry = processSource().entry(pid)
  if (entry === null) return
  const { startTicks, session } = entry
  const worker = { pid, startTicks, session, bootId: started.supervisor.bootId }
  try {
    writeStarted(directory, { ...started, worker })
  } catch (thrown) {
    // A reaper has other ways to find it; on a full disk the worker may still do its work.
    if (!isFault(thrown)) throw thrown
  }
}
