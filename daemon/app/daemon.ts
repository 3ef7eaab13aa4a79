import { type ScheduledTask, schedule } from 'node-cron'
import { describeFault, describeThrown, fault, isFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { layoutOf } from '../state/layout.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import { settlesWithin } from '../sys/bounded-waits.ts'
import { systemClock } from '../sys/clock.ts'
import { closeLeakedDescriptors } from '../sys/drain-descriptor.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { readFileBounded } from '../sys/files.ts'
import { type KernelLock, tryLock } from '../sys/kernel-lock.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import { setNonDumpable } from '../sys/native.ts'
import { runProcess } from '../sys/run-process.ts'
import { type Build, bundleOf } from './build.ts'
import { inspectProgramConfig, loadProgramConfig } from './load-program-config.ts'

// `caduceus daemon`: what cron does, in the foreground. Each tick is a process of its own, so this one
// keeps nothing of it, whatever becomes of it, and a tick reads the configuration as it is then.

type Environment = Readonly<Record<string, string>>

/** What the daemon says; each is one line. */
export type DaemonEvent =
  | Readonly<{ event: 'started'; pid: number; everySeconds: number; stateDir: string }>
  | Readonly<{ event: 'problem'; message: string }>
  | Readonly<{ event: 'interval'; everySeconds: number }>
  | Readonly<{ event: 'stopping' | 'stopped' }>

/** A tick leaves by itself before this; one that was stopped does not (design §5). */
const TICK_TIMEOUT_MS = LIMITS.tickMs + 60_000
/** After the drain time, for ending a tick that has not left. */
const END_TICK_MS = 10_000
/** Beats per interval: a tick is late by a tenth of the interval at most. */
const BEATS = 10

/**
 * Runs ticks until SIGTERM or SIGINT, then lets the one at work finish within `drain_timeout_seconds`; a
 * second signal leaves at once.
 * Faults: config/*, state/directory-refused, daemon/running, sys/*.
 */
export async function runDaemon(build: Build, tell: (event: DaemonEvent) => void): Promise<void> {
  setNonDumpable()
  closeLeakedDescriptors()
  const environment = readEnvironment()
  const { config } = loadProgramConfig(environment)
  prepareDirectories(config.stateDir)
  const lock = takeDaemonLock(config.stateDir)
  const drainMs = config.drainTimeoutSeconds * 1000
  const leaving = leaveOnSignal(drainMs + END_TICK_MS)
  const ticks = openTicks(build, environment, tell)
  try {
    const { stateDir, pollIntervalSeconds: everySeconds } = config
    tell({ event: 'started', pid: process.pid, everySeconds, stateDir })
    await fireUntil(leaving.signal, everySeconds, environment, tell, ticks.begin)
    tell({ event: 'stopping' })
    await ticks.end(drainMs)
    tell({ event: 'stopped' })
  } finally {
    lock.close()
    leaving.stop()
  }
}

/** Faults: daemon/running, sys/io, sys/native-unavailable. */
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

/**
 * A cron expression that is due about ten times in an interval, or once a minute for a long one. Cron
 * cannot say "every 90 seconds", so beats are counted by time, and each may find that nothing is due.
 */
export function scheduleOf(everySeconds: number): string {
  const wanted = Math.max(1, Math.floor(everySeconds / BEATS))
  const divisors = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60]
  const seconds = divisors.findLast((divisor) => divisor <= wanted) ?? 1
  return seconds === 60 ? '0 * * * * *' : `*/${seconds} * * * * *`
}

/** Begins a tick at once and then at the interval that the configuration has by then. */
async function fireUntil(
  signal: AbortSignal,
  firstSeconds: number,
  environment: Environment,
  tell: (event: DaemonEvent) => void,
  begin: () => boolean,
): Promise<void> {
  let everySeconds = firstSeconds
  let lastAt = Number.NEGATIVE_INFINITY
  const beat = (): void => {
    const wanted = intervalOf(environment) ?? everySeconds
    if (wanted !== everySeconds) {
      everySeconds = wanted
      tell({ event: 'interval', everySeconds })
      void task.destroy()
      task = start()
    }
    const now = performance.now()
    if (now - lastAt >= everySeconds * 1000 && begin()) lastAt = now
  }
  const start = (): ScheduledTask =>
    schedule(scheduleOf(everySeconds), beat, { suppressMissedWarning: true, logger: SILENT })
  let task = start()
  beat()
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await task.destroy()
}

/** The scheduler's own words are none of the daemon's lines; its failures come as ticks that do not start. */
const SILENT = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} }

/** null = the configuration does not load now, which the next tick tells. */
function intervalOf(environment: Environment): number | null {
  const inspection = inspectProgramConfig(environment)
  return inspection.kind === 'valid' ? inspection.loaded.config.pollIntervalSeconds : null
}

type Ticks = Readonly<{
  /** False = the last one is still at work. */
  begin: () => boolean
  /** Waits for the one at work, and ends it when it takes longer. */
  end: (drainMs: number) => Promise<void>
}>

function openTicks(
  build: Build,
  environment: Environment,
  tell: (event: DaemonEvent) => void,
): Ticks {
  const stop = new AbortController()
  let atWork: Promise<void> | null = null
  let known: readonly string[] = []
  const carry = async (): Promise<void> => {
    const problems = await runOneTick(build, environment, stop.signal)
    // What was told after the last tick is not told again until it was gone in between.
    for (const message of problems) {
      if (!known.includes(message)) tell({ event: 'problem', message })
    }
    known = problems
    atWork = null
  }
  return {
    begin: () => {
      if (atWork !== null) return false
      atWork = carry()
      return true
    },
    end: async (drainMs) => {
      if (atWork === null) return
      if (!(await settlesWithin(systemClock, atWork, drainMs))) stop.abort()
      await atWork
    },
  }
}

/** What went wrong in one tick, a line each; it never throws. */
async function runOneTick(
  build: Build,
  environment: Environment,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    const {
      code,
      signal: killedBy,
      stderr,
    } = await runProcess({
      argv: [process.execPath, bundleOf(build, 'caduceus'), 'run'],
      env: environment,
      timeoutMs: TICK_TIMEOUT_MS,
      signal,
    })
    const lines = stderr
      .toString('utf8')
      .split('\n')
      .map((line) => line.replace(/^caduceus: /, '').trim())
      .filter((line) => line !== '')
    if (code === 0 || lines.length > 0) return lines
    return [`The tick ended with ${killedBy ?? `exit code ${code}`} and said nothing.`]
  } catch (error) {
    return signal.aborted ? [] : [isFault(error) ? describeFault(error) : describeThrown(error)]
  }
}

/** An event as a line for people. */
export function renderEvent(event: DaemonEvent): string {
  switch (event.event) {
    case 'started':
      return `daemon ${event.pid} runs a tick every ${event.everySeconds} s (state in ${event.stateDir})`
    case 'interval':
      return `the interval is ${event.everySeconds} s now`
    case 'problem':
      return event.message
    case 'stopping':
      return 'daemon is stopping; a tick at work may finish, and runs go on'
    default:
      return 'daemon stopped'
  }
}
