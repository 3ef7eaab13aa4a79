import type { LaunchOutcome, LaunchRequest } from '../core/executor.ts'
import type { Clock } from '../core/ports.ts'
import { type Launch, SUPERVISOR_FDS } from '../core/supervision-files.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { closeDescriptor, openToAppend } from '../sys/files.ts'
import { type KernelLock, tryLock } from '../sys/kernel-lock.ts'
import { spawnDetached } from '../sys/spawn-detached.ts'
import { pathOf, readExit, readStarted, writeLaunch } from './control-run.ts'

export type SupervisorProgram = Readonly<{
  clock: Clock
  /** Program and leading arguments of the supervisor, of the build that owns the run. */
  argv: readonly [string, ...string[]]
  /** The supervisor's own, whole environment: nothing in it may be secret. */
  environment: Readonly<Record<string, string>>
  /** Where it says why it refused a run; null = nowhere. */
  logPath: string | null
}>

/**
 * Starts the supervisor of a run. Its lock is taken here and handed over with the spawn, so there is
 * no moment at which the run looks dead (PROTOCOLS, Locks and hand-over). Watching shows whether it came to start
 * a worker.
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
