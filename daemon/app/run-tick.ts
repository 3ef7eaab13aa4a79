import { randomBytes } from 'node:crypto'
import type { Config } from '../config/make-config.ts'
import { countEffects } from '../core/effects.ts'
import { describeFault } from '../core/fault.ts'
import { formatIssue, issueId } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import { TICK_OUTCOMES, type TickOutcome } from '../core/meta.ts'
import type { Store } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { nextStepOf } from '../core/resume.ts'
import { makeRunId } from '../core/run-id.ts'
import { type TickReport, tick } from '../engine/tick.ts'
import { openGarbage } from '../state/garbage.ts'
import type { StateLayout } from '../state/layout.ts'
import { requestCancel } from '../supervision/control-run.ts'
import { systemClock } from '../sys/clock.ts'
import { closeLeakedDescriptors } from '../sys/drain-descriptor.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { endLockHolder, killOwned } from '../sys/find-processes.ts'
import { leaveAfter, leaveOnSignal } from '../sys/leaving.ts'
import { setNonDumpable } from '../sys/native.ts'
import { openRunScope } from '../sys/run-scope.ts'
import type { Build } from './build.ts'
import { withHostSecrets } from './credentials.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { rotateLog } from './open-log.ts'
import { openPorts, type Ports } from './open-ports.ts'
import { requireExecutor, tickSettingsOf } from './settings-of.ts'
import { startRunner } from './start-runner.ts'
import { takeTickLock } from './tick-lock.ts'
import { waitForRuns } from './wait-for-runs.ts'

/** After this a tick begins nothing new; the rest of `LIMITS.tickMs` is for leaving what people read. */
const PLANNING_MS = LIMITS.tickMs - 15_000

export type RunOptions = Readonly<{
  /** Stay until every run this call started or took over has settled. */
  wait: boolean
  /** Poll at once, whatever the cadence says. */
  now: boolean
  /** Tells the operator a line: it has been told when this returns. */
  tell: (line: string) => void
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
  for (const { path, found, wanted } of warnings) {
    ports.log.warn('configuration warning', { path, found, wanted })
  }
  const go = async (forced: boolean): Promise<TickReport | null> => {
    time.over = ports.clock.now() + PLANNING_MS
    const parts = { ports, config, environment, build, signal: leaving.signal }
    return tickUnderLock(parts, time.over, forced)
  }

  const report = await go(options.now)
  if (report === null) {
    ports.log.info('tick ended', { outcome: 'skipped_concurrent' })
    return { outcome: 'skipped_concurrent', attention: [], problems: [], exitCode: 0 }
  }
  if (options.wait) {
    const again = async (): Promise<readonly string[]> => (await go(false))?.runIds ?? []
    await waitForRuns(ports, report.runIds, again, leaving.signal)
  }
  leaving.stop()
  const failed = TICK_OUTCOMES[report.outcome].exitCode === 1
  const problems = failed
    ? onceEach(report.problems.map(({ thrown }) => describeFault(thrown)))
    : []
  for (const line of problems) options.tell(line)
  const attention = await printAttention(ports.store, ports.layout, options.tell)
  return {
    outcome: leaving.signal.aborted ? 'cancelled' : report.outcome,
    attention,
    problems,
    exitCode: failed || attention.length > 0 ? 1 : 0,
  }
}

/** What is wrong for several issues alike is told once. */
function onceEach(lines: readonly string[]): readonly string[] {
  return [...new Set(lines)]
}

type TickParts = Readonly<{
  ports: Ports
  config: Config
  environment: Readonly<Record<string, string>>
  build: Build
  signal: AbortSignal
}>

/** null = another tick holds the lock. */
async function tickUnderLock(
  { ports, config, environment, build, signal }: TickParts,
  deadlineAt: number,
  forced: boolean,
): Promise<TickReport | null> {
  const lock = await takeTickLock(ports)
  if (lock === null) return null
  const line = 'caduceus: the tick ran out of time; the next one goes on. See: caduceus status'
  const disarm = leaveAfter(LIMITS.tickMs, line)
  const scope = openRunScope(ports.clock, environment)
  try {
    rotateLog(config.logPath)
    return await tick(
      {
        ...ports,
        garbage: countEffects('garbage', openGarbage(config.stateDir), announceEffect),
        settings: tickSettingsOf(config),
        build: build.dist,
        deadlineAt,
        signal,
        newRunId: () => makeRunId(ports.clock.now(), randomBytes(10)),
        endOrphans: (runner) => {
          killOwned(runner)
        },
        endOwner: (key, owner) => endLockHolder(ports.clock, ports.layout.claim(key), owner),
        cancelWorker: (runId) => requestCancel(ports.layout.run(runId).control),
        prepareStart: async () => {
          await ports.token.get()
        },
        startRunner: async (claim, runId) => {
          const { layout, token } = ports
          const parts = { build, layout, environment, scope, token: await token.get() }
          await startRunner(parts, claim, runId)
        },
      },
      forced,
    )
  } finally {
    disarm()
    lock.close()
  }
}

/**
 * Tells and returns one line for every issue that has come to need attention since the last call; each
 * is told once (design §11), whatever the clock does meanwhile. Noted as told only then: whoever dies in
 * between leaves it to the next tick to tell it again. Faults: state/*.
 */
export async function printAttention(
  store: Store,
  layout: StateLayout,
  tell: (line: string) => void,
): Promise<readonly string[]> {
  const { attentionTold } = store.readMeta()
  const inNeed = Object.values(store.readQueue().entries).filter(
    ({ phase }) => phase === 'needs_attention' || phase === 'failed',
  )
  const fresh = inNeed.filter(({ key, updatedAt }) => attentionTold[issueId(key)] !== updatedAt)
  const isOver = Object.keys(attentionTold).length > inNeed.length - fresh.length
  if (fresh.length === 0 && !isOver) return []
  const lines = fresh.map(
    (entry) => `${formatIssue(entry.key)} needs attention: ${describe(entry, layout)}`,
  )
  for (const line of lines) tell(line)
  await store.changeMeta((meta) => ({
    state: {
      ...meta,
      attentionTold: Object.fromEntries(
        inNeed.map(({ key, updatedAt }) => [issueId(key), updatedAt]),
      ),
    },
    value: undefined,
  }))
  return lines
}

/** What happened, and what to do next: a spent budget has no hint of its own, there it is the output. */
function describe(entry: QueueEntry, layout: StateLayout): string {
  const { phase, lastError, lastRunId } = entry
  const message = lastError?.message ?? 'unknown'
  const output =
    phase !== 'failed' || lastRunId === null
      ? ''
      : ` Its output is in ${layout.run(lastRunId).transcript}.`
  return `${message}${output} ${nextStepOf(entry)}`
}
