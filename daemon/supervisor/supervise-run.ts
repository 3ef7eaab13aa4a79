// One worker from its start to the report of its end (PROTOCOLS, Locks and hand-over, Ending processes):
//
//   prepare      lock, launch.json, environment, transcript, tree lock     a fault here: nothing was paid
//   started.json durable                                                    from here on: maybe paid
//   worker       own session; both streams into one pipe; tree lock as fd 3
//   watch        until it exits or a rule of decide-end.ts says that it must
//   end          every process of the run, then the rest of the pipe
//   exit.json    after the tree was synced; the locks drop with us
//
// It speaks only through files, so it does not matter whether the runner still lives.

import type { Clock } from '../core/ports.ts'
import type { Started } from '../core/supervision-files.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { drainDescriptor } from '../sys/drain-descriptor.ts'
import { closeDescriptor } from '../sys/files.ts'
import { onSignals } from '../sys/on-signals.ts'
import { createPipe } from '../sys/pipe.ts'
import { ownIdentity } from '../sys/process-identity.ts'
import { spawnWorker } from '../sys/spawn-worker.ts'
import { watchActivity } from './activity.ts'
import { prepareWorker } from './prepare-worker.ts'
import { reportEnd } from './report-end.ts'
import { writeStarted } from './report-files.ts'
import { superviseWorker } from './supervise-worker.ts'

/** Runs the worker described in a run's folder; resolves when exit.json is durable. Faults: any of `prepareWorker`. */
export async function superviseRun(clock: Clock, directory: string): Promise<void> {
  const run = prepareWorker(directory)
  const { launch, transcript, treeLock } = run
  const stop = new AbortController()
  const ignore = onSignals(['SIGTERM', 'SIGINT', 'SIGHUP'], () => stop.abort())
  try {
    const pipe = createPipe()
    const startedAt = clock.now()
    const started: Started = {
      supervisor: ownIdentity(),
      worker: null,
      startedAt: toTimestamp(startedAt),
      deadlineAt: toTimestamp(startedAt + launch.timeoutMs),
    }
    writeStarted(directory, started)
    const activity = watchActivity(clock, launch)
    const spawned = await spawnWorker({
      argv: launch.argv,
      cwd: launch.treePath,
      env: run.environment,
      outputFd: pipe.writeFd,
      lockFd: treeLock.fd,
    })
    closeDescriptor(pipe.writeFd)
    treeLock.close()
    // Started now, so that the worker does not wait for it; until then the pipe itself holds what is printed.
    const drain = drainDescriptor(pipe.readFd, (bytes) => {
      transcript.write(bytes)
      activity.noteOutput()
    })
    const scene = { clock, directory, run, started, activity, drain, stop: stop.signal }
    if (spawned.kind === 'spawned') return await superviseWorker(scene, spawned.worker)
    drain.stop()
    await reportEnd(scene, {
      reason: 'spawn-failed',
      detail: spawned.cause,
      exitCode: null,
      signal: null,
      descendantsKilled: 0,
      unkillable: [],
    })
  } finally {
    ignore()
    transcript.close()
  }
}
