import type { Executor } from '../core/executor.ts'
import { endLockHolder } from '../sys/lock-holder.ts'
import { pathOf, readStarted, writeCancel } from './control-run.ts'
import { reapRun } from './reap-run.ts'
import { type SupervisorProgram, startSupervisor } from './start-supervisor.ts'
import { watchSupervisor } from './watch-supervisor.ts'

/** Runs workers as processes of this host and user (`executor_mode: trusted_host`). */
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
