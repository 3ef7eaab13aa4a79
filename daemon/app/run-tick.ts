import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { describeFault, fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { TICK_OUTCOMES, type TickOutcome } from '../core/meta.ts'
import { makeRunId } from '../core/run-id.ts'
import { type TickReport, tick } from '../engine/tick.ts'
import { closeLeakedDescriptors } from '../sys/close-leaked-descriptors.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { tryLock } from '../sys/kernel-lock.ts'
import { setNonDumpable } from '../sys/native.ts'
import { killSession } from '../sys/terminate.ts'
import type { Build } from './build.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { rotateLog } from './open-log.ts'
import { openPorts, type Ports } from './open-ports.ts'
import { tickSettingsOf } from './settings-of.ts'
import { startRunner } from './start-runner.ts'
import { tellAttention } from './tell-attention.ts'
import { waitForRuns } from './wait-for-runs.ts'

export type RunOptions = Readonly<{
  /** Stay until every run this call started or took over has settled. */
  wait: boolean
  /** Poll at once, whatever the cadence says. */
  now: boolean
}>

export type RunReport = Readonly<{
  outcome: TickOutcome
  /** Lines for the operator: issues that need attention since the last tick. */
  attention: readonly string[]
  /** Lines about what went wrong in this tick. */
  problems: readonly string[]
  exitCode: 0 | 1
}>

/**
 * One tick (`caduceus run`). Another tick at work is no fault: this one leaves (design §5).
 * Faults: config/*, config/executor-unavailable, state/*, sys/native-unavailable.
 */
export async function runTick(build: Build, options: RunOptions): Promise<RunReport> {
  setNonDumpable()
  closeLeakedDescriptors()
  const environment = readEnvironment()
  const { config, warnings } = loadProgramConfig(environment)
  requireExecutor(config)
  const ports = openPorts({ config, environment, build, process: 'tick', token: null })
  for (const { path, found, wanted } of warnings) {
    ports.log.warn('configuration warning', { path, found, wanted })
  }
  const go = async (forced: boolean): Promise<TickReport | null> =>
    tickUnderLock(ports, config, environment, build, forced)

  const report = await go(options.now)
  if (report === null) {
    ports.log.info('tick ended', { outcome: 'skipped_concurrent' })
    return { outcome: 'skipped_concurrent', attention: [], problems: [], exitCode: 0 }
  }
  if (options.wait)
    await waitForRuns(ports, report.runIds, async () => (await go(false))?.runIds ?? [])
  const attention = await tellAttention(ports.store, ports.layout)
  const failed = TICK_OUTCOMES[report.outcome].exitCode === 1
  return {
    outcome: report.outcome,
    attention,
    problems: failed ? onceEach(report.problems.map(({ thrown }) => describeFault(thrown))) : [],
    exitCode: failed || attention.length > 0 ? 1 : 0,
  }
}

/** What is wrong for several issues alike is told once. */
function onceEach(lines: readonly string[]): readonly string[] {
  return [...new Set(lines)]
}

function requireExecutor(config: Config): void {
  if (config.executorMode === 'trusted_host') return
  throw fault('config/executor-unavailable', { mode: config.executorMode })
}

/** null = another tick holds the lock. */
async function tickUnderLock(
  ports: Ports,
  config: Config,
  environment: Readonly<Record<string, string>>,
  build: Build,
  forced: boolean,
): Promise<TickReport | null> {
  const lock = tryLock(ports.layout.tickLock)
  if (lock === null) return null
  try {
    rotateLog(config.logPath)
    return await tick(
      {
        ...ports,
        settings: tickSettingsOf(config),
        build: build.dist,
        deadlineAt: ports.clock.now() + LIMITS.tickMs,
        newRunId: () => makeRunId(ports.clock.now(), randomBytes(10)),
        endLeftovers: (runner) => {
          killSession(runner)
        },
        prepareStart: async () => {
          await ports.token.get()
        },
        startRunner: async (claim, runId) => {
          const { layout, token } = ports
          await startRunner({ build, layout, environment, token: await token.get() }, claim, runId)
        },
      },
      forced,
    )
  } finally {
    lock.close()
  }
}
