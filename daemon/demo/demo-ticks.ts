import { type Build, bundleOf } from '../app/build.ts'
import { systemClock } from '../sys/clock.ts'
import { identifyProcess, type ProcessIdentity } from '../sys/process-identity.ts'
import { captureHead } from '../sys/run-process.ts'
import { type StartedProcess, signalGroup, startProcess } from '../sys/start-process.ts'
import type { DemoStage } from './scene.ts'

/** Between two ticks; cron takes longer, but nobody wants to watch that. */
const TICK_PAUSE_MS = 200

const TICK_OUTPUT_BYTES = 4096

export type Ticks = Readonly<{
  /** The one that runs. */
  current: () => ProcessIdentity | null
  /** Starts the next one when the last has left and it is time, as cron would. */
  keepOne: (notBefore: number) => Promise<void>
  /** What the last one printed for its operator. */
  said: () => string
  end: () => void
}>

export function openTicks(build: Build, stage: DemoStage): Ticks {
  const argv = [process.execPath, bundleOf(build, 'caduceus'), 'run', '--now', '--wait'] as const
  let running: StartedProcess | null = null
  let identity: ProcessIdentity | null = null
  let nextAt = 0
  let said = ''
  return {
    current: () => (running === null ? null : identity),
    keepOne: async (notBefore) => {
      if (running !== null || systemClock.now() < Math.max(nextAt, notBefore)) return
      const child = await startProcess({
        argv,
        cwd: stage.root,
        env: stage.environment,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const output = captureHead(child.stderr, TICK_OUTPUT_BYTES, () => undefined)
      running = child
      identity = identifyProcess(child.pid)
      child.once('close', () => {
        running = null
        nextAt = systemClock.now() + TICK_PAUSE_MS
        said = output.bytes().toString('utf8').trim()
      })
    },
    said: () => said,
    end: () => {
      if (running !== null) signalGroup(running, 'SIGKILL')
    },
  }
}
