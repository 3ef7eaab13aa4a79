import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { layoutOf } from '../state/layout.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { readFileBounded } from '../sys/files.ts'
import { type KernelLock, tryLock } from '../sys/kernel-lock.ts'
import { closeLeakedDescriptors } from '../sys/leaked-descriptors.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import { setNonDumpable } from '../sys/protect-process.ts'
import type { Build } from './build.ts'
import type { DaemonEvent } from './daemon-event.ts'
import { fireUntil } from './fire-ticks.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openTicks } from './tick-processes.ts'

/** How long this process stays after the drain time, to end a tick that is still running. */
const END_TICK_MS = 10_000

/**
 * `caduceus daemon`: does in the foreground what cron does. Each tick is a process of its own, which reads the
 * configuration as it is then and leaves nothing in this process. On SIGTERM or SIGINT the running tick may
 * finish within `drain_timeout_seconds`; a second signal ends this process at once.
 * Faults: config/*, state/directory-refused, daemon/running, sys/*.
 */
export async function runDaemon(build: Build, report: (event: DaemonEvent) => void): Promise<void> {
  setNonDumpable()
  closeLeakedDescriptors()
  const environment = readEnvironment()
  const { config } = loadProgramConfig(environment)
  prepareDirectories(config.stateDir)
  const lock = takeDaemonLock(config.stateDir)
  const drainMs = config.drainTimeoutSeconds * 1000
  const leaving = leaveOnSignal(drainMs + END_TICK_MS)
  const ticks = openTicks(build, environment, report)
  try {
    const { stateDir, pollIntervalSeconds: everySeconds } = config
    report({ event: 'started', pid: process.pid, everySeconds, stateDir })
    await fireUntil(leaving.signal, everySeconds, environment, report, ticks.start)
    report({ event: 'stopping' })
    await ticks.end(drainMs)
    report({ event: 'stopped' })
  } finally {
    lock.close()
    leaving.stop()
  }
}

/** The lock that lets one daemon fire ticks. Faults: daemon/running, sys/io, sys/native-unavailable. */
function takeDaemonLock(stateDir: string): KernelLock {
  const path = layoutOf(stateDir).daemonLock
  const lock = tryLock(path)
  if (lock === null) {
    const pid = readFileBounded(path, LIMITS.claimBytes)?.toString('utf8').trim()
    throw fault('daemon/running', { pid: pid || 'unknown', path: stateDir })
  }
  lock.writeNote(`${process.pid}\n`)
  return lock
}
