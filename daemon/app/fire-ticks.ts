import { type ScheduledTask, schedule } from 'node-cron'
import type { DaemonEvent } from './daemon-event.ts'
import { inspectProgramConfig } from './load-program-config.ts'

/** Checks per interval: a tick is late by at most a tenth of the interval. */
const CHECKS = 10

/**
 * A cron expression that matches about ten times in an interval, and once a minute for a long interval. Cron
 * cannot say "every 90 seconds", so each match only checks by the clock whether a tick is due.
 */
export function scheduleOf(everySeconds: number): string {
  const longest = Math.max(1, Math.floor(everySeconds / CHECKS))
  const divisors = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60]
  const seconds = divisors.findLast((divisor) => divisor <= longest) ?? 1
  return seconds === 60 ? '0 * * * * *' : `*/${seconds} * * * * *`
}

/**
 * Starts a tick at once, and further ones at the interval that the configuration has by then.
 * @param startTick false = the last tick is still running, and the next check tries again
 */
export async function fireUntil(
  signal: AbortSignal,
  firstSeconds: number,
  environment: Readonly<Record<string, string>>,
  report: (event: DaemonEvent) => void,
  startTick: () => boolean,
): Promise<void> {
  let everySeconds = firstSeconds
  let lastAt = Number.NEGATIVE_INFINITY
  const check = (): void => {
    const configured = intervalOf(environment) ?? everySeconds
    if (configured !== everySeconds) {
      everySeconds = configured
      report({ event: 'interval', everySeconds })
      void task.destroy()
      task = scheduleChecks()
    }
    const now = performance.now()
    if (now - lastAt >= everySeconds * 1000 && startTick()) lastAt = now
  }
  const scheduleChecks = (): ScheduledTask =>
    schedule(scheduleOf(everySeconds), check, { suppressMissedWarning: true, logger: SILENT })
  let task = scheduleChecks()
  check()
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await task.destroy()
}

/** Keeps the scheduler's own messages out of the daemon's output. */
const SILENT = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} }

/** Null = the configuration does not load now, which the next tick reports. */
function intervalOf(environment: Readonly<Record<string, string>>): number | null {
  const inspection = inspectProgramConfig(environment)
  return inspection.kind === 'valid' ? inspection.loaded.config.pollIntervalSeconds : null
}
