import { randomBytes } from 'node:crypto'
import type { Config } from '../config/make-config.ts'
import { countEffects } from '../core/effects.ts'
import { LIMITS } from '../core/limits.ts'
import { makeRunId } from '../core/run-id.ts'
import { type TickReport, tick } from '../engine/tick.ts'
import { openGarbage } from '../state/garbage.ts'
import { requestCancel } from '../supervision/control-run.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { leaveAfter } from '../sys/leaving.ts'
import { endLockHolder } from '../sys/lock-holder.ts'
import { killOwned } from '../sys/owner-mark.ts'
import { openRunScope } from '../sys/run-scope.ts'
import type { Build } from './build.ts'
import { rotateLog } from './open-log.ts'
import type { Ports } from './open-ports.ts'
import { tickSettingsOf } from './settings-of.ts'
import { startRunner } from './start-runner.ts'
import { takeTickLock } from './tick-lock.ts'

type TickParts = Readonly<{
  ports: Ports
  config: Config
  environment: Readonly<Record<string, string>>
  build: Build
  signal: AbortSignal
}>

/**
 * Opens what a tick needs besides the ports and runs it while no other process plans.
 * Returns null when another tick holds the lock. Faults: state/*, sys/*.
 */
export async function tickUnderLock(
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
