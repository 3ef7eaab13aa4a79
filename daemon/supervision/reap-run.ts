import type { ReapOutcome, SupervisedRun } from '../core/executor.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import {
  ownAncestry,
  processesHolding,
  processesOfSession,
  processesWithVariable,
  processesWorkingIn,
} from '../sys/find-processes.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { identifyProcess, ownIdentity, type ProcessIdentity } from '../sys/process-identity.ts'
import { killIdentity } from '../sys/terminate.ts'
import { pathOf, readExit, readStarted } from './control-run.ts'

const PAUSE_MS = 20

/**
 * Ends the processes that a vanished supervisor has orphaned (PROTOCOLS, Adoption): the worker's session, holders
 * of the tree lock, processes with this run's CADUCEUS_RUN_ID or a working directory in its tree – until two rounds
 * in a row find no process and the lock is free. Spares the caller and the processes above it, such as the
 * shell of an operator who stands in the tree. As long as a supervisor holds its lock, it is the one who
 * ends them, and nothing is done here. Faults: sys/io.
 */
export async function reapRun(clock: Clock, run: SupervisedRun): Promise<ReapOutcome> {
  if (isLocked(pathOf(run, 'supervisorLock')))
    return { kind: 'unkillable', pids: readExit(run)?.unkillable ?? [] }
  const worker = readStarted(run)?.worker ?? null
  const killed = new Set<number>()
  const until = clock.now() + LIMITS.killBoundMs
  for (let emptyProbes = 0; ; ) {
    const orphans = orphansOf(run, worker)
    for (const [pid, process] of orphans) {
      killed.add(pid)
      killIdentity(process, 'SIGKILL')
    }
    const isClear = orphans.size === 0 && !isLocked(pathOf(run, 'treeLock'))
    emptyProbes = isClear ? emptyProbes + 1 : 0
    if (emptyProbes === 2) return { kind: 'clear', killed: killed.size }
    if (clock.now() >= until) return { kind: 'unkillable', pids: [...orphans.keys()] }
    await clock.sleep(PAUSE_MS)
  }
}

function orphansOf(
  run: SupervisedRun,
  worker: ProcessIdentity | null,
): ReadonlyMap<number, ProcessIdentity> {
  const found = [
    ...(isSessionOf(worker) ? processesOfSession(worker.session) : []),
    ...processesHolding(pathOf(run, 'treeLock')),
    ...processesWithVariable('CADUCEUS_RUN_ID', run.runId),
    ...processesWorkingIn(run.treePath),
  ]
  const spared = ownAncestry()
  return new Map(
    found.filter(({ pid }) => !spared.has(pid)).map((process) => [process.pid, process]),
  )
}

/** A recorded session counts unless it is of another boot or its number names another session now. */
function isSessionOf(worker: ProcessIdentity | null): worker is ProcessIdentity {
  if (worker === null) return false
  const self = ownIdentity()
  if (worker.bootId !== self.bootId || worker.session === self.session) return false
  const leader = identifyProcess(worker.session)
  return leader === null || leader.startTicks === worker.startTicks
}
