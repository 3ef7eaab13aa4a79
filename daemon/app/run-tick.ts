import { describeFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { TICK_OUTCOMES, type TickOutcome } from '../core/tick-outcomes.ts'
import type { TickReport } from '../engine/tick.ts'
import { systemClock } from '../sys/clock.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { closeLeakedDescriptors } from '../sys/leaked-descriptors.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import { setNonDumpable } from '../sys/protect-process.ts'
import type { Build } from './build.ts'
import { withHostSecrets } from './credentials.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openPorts } from './open-ports.ts'
import { printAttention } from './print-attention.ts'
import { requireExecutor } from './settings-of.ts'
import { tickUnderLock } from './tick-under-lock.ts'
import { waitForRuns } from './wait-for-runs.ts'

/** After this a tick starts nothing new; the rest of `LIMITS.tickMs` is for writing down its outcome. */
const PLANNING_MS = LIMITS.tickMs - 15_000

export type RunOptions = Readonly<{
  /** Stay until every run that this call started or took over is settled. */
  wait: boolean
  /** Poll at once, whatever the cadence says. */
  now: boolean
  /** Prints a line for the operator; the line is out when this returns. */
  print: (line: string) => void
}>

export type RunReport = Readonly<{
  outcome: TickOutcome
  /** Lines for the operator: issues that have come to need attention since the last tick. */
  attention: readonly string[]
  /** Lines about what went wrong in this tick. */
  problems: readonly string[]
  exitCode: 0 | 1
}>

/**
 * One tick (`caduceus run`). When another tick holds the lock, this one does nothing, which is no fault.
 * Faults: config/*, config/executor-unavailable, state/*, sys/native-unavailable.
 */
export async function runTick(build: Build, options: RunOptions): Promise<RunReport> {
  setNonDumpable()
  closeLeakedDescriptors()
  const environment = readEnvironment()
  const { config, warnings } = loadProgramConfig(environment)
  requireExecutor(config)
  const leaving = leaveOnSignal(config.drainTimeoutSeconds * 1000)
  const time = { over: 0 }
  const ports = openPorts({
    config,
    environment: withHostSecrets(environment, config),
    build,
    process: 'tick',
    token: null,
    timeLeftMs: () => time.over - systemClock.now(),
  })
  for (const warning of warnings) {
    const { path, found, wanted } = warning
    ports.log.warn('configuration warning', { path, found, wanted })
  }
  const runOnce = async (forced: boolean): Promise<TickReport | null> => {
    time.over = ports.clock.now() + PLANNING_MS
    const parts = { ports, config, environment, build, signal: leaving.signal }
    return tickUnderLock(parts, time.over, forced)
  }

  const report = await runOnce(options.now)
  if (report === null) {
    ports.log.info('tick ended', { outcome: 'skipped_concurrent' })
    return { outcome: 'skipped_concurrent', attention: [], problems: [], exitCode: 0 }
  }
  if (options.wait) {
    const again = async (): Promise<readonly string[]> => (await runOnce(false))?.runIds ?? []
    await waitForRuns(ports, report.runIds, again, leaving.signal)
  }
  leaving.stop()
  const failed = TICK_OUTCOMES[report.outcome].exitCode === 1
  const problems = failed
    ? onceEach(report.problems.map(({ thrown }) => describeFault(thrown)))
    : []
  for (const line of problems) options.print(line)
  const attention = await printAttention(ports.store, ports.layout, options.print)
  return {
    outcome: leaving.signal.aborted ? 'cancelled' : report.outcome,
    attention,
    problems,
    exitCode: failed || attention.length > 0 ? 1 : 0,
  }
}

/** The same problem of several issues is printed once. */
function onceEach(lines: readonly string[]): readonly string[] {
  return [...new Set(lines)]
}
