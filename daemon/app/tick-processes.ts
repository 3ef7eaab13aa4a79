import { describeFault, describeThrown, isFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { settlesWithin } from '../sys/bounded-waits.ts'
import { systemClock } from '../sys/clock.ts'
import { runProcess } from '../sys/run-process.ts'
import { type Build, bundleOf } from './build.ts'
import type { DaemonEvent } from './daemon-event.ts'

/** A tick exits by itself before this; one that hangs or was stopped by a signal is ended then. */
const TICK_TIMEOUT_MS = LIMITS.tickMs + 60_000

type Ticks = Readonly<{
  /** False = the last tick is still running, and none was started. */
  start: () => boolean
  /** Waits up to `drainMs` for the running tick, then ends it. */
  end: (drainMs: number) => Promise<void>
}>

/** Runs ticks one at a time, and reports each problem once until a tick has passed without it. */
export function openTicks(
  build: Build,
  environment: Readonly<Record<string, string>>,
  report: (event: DaemonEvent) => void,
): Ticks {
  const stop = new AbortController()
  let running: Promise<void> | null = null
  let reported: readonly string[] = []
  const runToEnd = async (): Promise<void> => {
    const problems = await runOneTick(build, environment, stop.signal)
    for (const message of problems) {
      if (!reported.includes(message)) report({ event: 'problem', message })
    }
    reported = problems
    running = null
  }
  return {
    start: () => {
      if (running !== null) return false
      running = runToEnd()
      return true
    },
    end: async (drainMs) => {
      if (running === null) return
      if (!(await settlesWithin(systemClock, running, drainMs))) stop.abort()
      await running
    },
  }
}

/** Runs one tick and returns its problems, a line each. Never throws. */
async function runOneTick(
  build: Build,
  environment: Readonly<Record<string, string>>,
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
