import { type Build, bundleOf } from '../app/build.ts'
import { captureHead } from '../sys/capture-head.ts'
import { systemClock } from '../sys/clock.ts'
import { identifyProcess, type ProcessIdentity } from '../sys/process-identity.ts'
import { type StartedProcess, signalGroup, startProcess } from '../sys/start-process.ts'
import type { DemoScene } from './scene.ts'

/** Between two ticks. Cron takes longer, but a viewer should not have to wait. */
const TICK_PAUSE_MS = 200
const TICK_OUTPUT_BYTES = 4096

export type Ticks = Readonly<{
  /** The tick that runs now; null = none. */
  current: () => ProcessIdentity | null
  /** Starts the next tick, as cron would, when the last one has ended and the time has come. */
  startNext: (notBefore: number) => Promise<void>
  /** What the last tick printed for its operator. */
  output: () => string
  /** Kills the tick that runs. */
  end: () => void
}>

/** Ticks of the built program, one at a time. */
export function openTicks(build: Build, scene: DemoScene): Ticks {
  const argv = [process.execPath, bundleOf(build, 'caduceus'), 'run', '--now', '--wait'] as const
  let running: StartedProcess | null = null
  let identity: ProcessIdentity | null = null
  let nextAt = 0
  let lastOutput = ''
  return {
    current: () => (running === null ? null : identity),
    startNext: async (notBefore) => {
      if (running !== null || systemClock.now() < Math.max(nextAt, notBefore)) return
      const child = await startProcess({
        argv,
        cwd: scene.root,
        env: scene.environment,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const output = captureHead(child.stderr, TICK_OUTPUT_BYTES, () => undefined)
      running = child
      identity = identifyProcess(child.pid)
      child.once('close', () => {
        running = null
        nextAt = systemClock.now() + TICK_PAUSE_MS
        lastOutput = output.bytes().toString('utf8').trim()
      })
    },
    output: () => lastOutput,
    end: () => {
      if (running !== null) signalGroup(running, 'SIGKILL')
    },
  }
}
