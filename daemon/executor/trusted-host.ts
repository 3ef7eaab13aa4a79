import type { Executor, SupervisedRun } from '../core/executor.ts'
import type { Clock } from '../core/ports.ts'
import { ownAncestry, processesHolding } from '../sys/find-processes.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import type { ProcessIdentity } from '../sys/process-identity.ts'
import { killIdentity } from '../sys/terminate.ts'
import { pathOf, readStarted, writeCancel } from './run-files.ts'
import { type SupervisorProgram, startSupervisor } from './start-supervisor.ts'
import { sweepRun } from './sweep-run.ts'
import { watchSupervisor } from './watch-supervisor.ts'

/** How long the lock of a killed supervisor may take to fall (P§1). */
const KILL_WAIT_MS = 5000
const PAUSE_MS = 50

/** Runs workers as processes of this host and user (design §7, `executor_mode: trusted_host`). */
export function trustedHost(program: SupervisorProgram): Executor {
  const { clock } = program
  return {
    launch: (request) => startSupervisor(program, request),
    watch: (run, watching) => watchSupervisor(clock, run, watching),
    cancel: writeCancel,
    killSupervisor: (run) => killSupervisor(clock, run),
    sweep: (run) => sweepRun(clock, run),
  }
}

async function killSupervisor(clock: Clock, run: SupervisedRun): Promise<boolean> {
  for (const process of await supervisorsOf(clock, run)) killIdentity(process, 'SIGKILL')
  const until = clock.now() + KILL_WAIT_MS
  while (isLocked(pathOf(run, 'supervisorLock'))) {
    if (clock.now() >= until) return false
    await clock.sleep(PAUSE_MS)
  }
  return true
}

/**
 * The recorded supervisor, whose identity is compared before it is hit. One that never came so far as
 * to record itself is known by holding its lock; somebody who only probes it does not for long.
 */
async function supervisorsOf(
  clock: Clock,
  run: SupervisedRun,
): Promise<readonly ProcessIdentity[]> {
  const recorded = readStarted(run)?.supervisor
  if (recorded !== undefined) return [recorded]
  const lockPath = pathOf(run, 'supervisorLock')
  const first = new Set(processesHolding(lockPath).map(({ pid }) => pid))
  await clock.sleep(PAUSE_MS)
  const spared = ownAncestry()
  return processesHolding(lockPath).filter(({ pid }) => first.has(pid) && !spared.has(pid))
}
