import { type Build, bundleOf } from '../app/build.ts'
import { followRuns } from '../app/follow-runs.ts'
import { paint } from '../app/paint.ts'
import { fault } from '../core/fault.ts'
import { openJsonStore } from '../state/json-store.ts'
import { systemClock } from '../sys/clock.ts'
import { runProcess } from '../sys/run-process.ts'
import type { Print } from './demo-report.ts'
import { DEMO, DEMO_ENDS } from './demo-story.ts'
import { type Kill } from './kill-processes.ts'
import { runThroughCrashes } from './run-through-crashes.ts'
import type { DemoStage } from './scene.ts'

/** A whole run takes seconds; this only bounds a demo that is stuck. */
const RUN_TIMEOUT_MS = 120_000

const PROBE_INTERVAL_MS = 100

function follow(stage: DemoStage, tell: Print): () => void {
  return followRuns(stage.stateDir, (line, origin) => {
    tell(origin === 'daemon' ? `  ${paint.step('•')} ${line}` : `      ${paint.quiet('│')} ${line}`)
  })
}

/** The same with the daemon's processes being killed; `kills` receives each as it happens. */
export async function crashUntilEnd(
  build: Build,
  stage: DemoStage,
  seed: number,
  kills: Kill[],
  tell: Print,
  signal: AbortSignal,
): Promise<string> {
  tell(`  its processes are killed at random moments; again in the same way with --seed ${seed}`)
  const onKill = (kill: Kill): void => {
    kills.push(kill)
    const who = `${kill.process} (pid ${kill.pid})`
    tell(`  ${paint.bad('✗')} killed the ${who} while it ${kill.during}`)
  }
  const until = systemClock.now() + RUN_TIMEOUT_MS
  return runThroughCrashes(build, stage, { seed, until, signal }, onKill, follow(stage, tell))
}

/** One tick after another, as cron would do it, until nothing more happens by itself. */
export async function runUntilEnd(
  build: Build,
  stage: DemoStage,
  tell: Print,
  signal: AbortSignal,
): Promise<string> {
  const look = follow(stage, tell)
  const store = openJsonStore({ clock: systemClock }, stage.stateDir)
  const until = systemClock.now() + RUN_TIMEOUT_MS
  for (;;) {
    await runProgram(build, stage, look, signal)
    const [entry] = Object.values(store.readQueue().entries)
    const phase = entry?.phase ?? 'unknown'
    if (entry?.phase === 'queued') {
      tell(
        `  ${paint.step('•')} attempt ${entry.attempts} of ${DEMO.attempts} failed; the next one is due at ${entry.nextAttemptAt ?? 'once'}`,
      )
      await systemClock.sleep(
        Math.max(Date.parse(entry.nextAttemptAt ?? '') - systemClock.now(), 0),
        signal,
      )
    }
    if (DEMO_ENDS.includes(phase)) return phase
    if (systemClock.now() > until) {
      throw fault('demo/failed', { reason: `the issue is ${phase}`, path: stage.root })
    }
  }
}

/** The real program, as a process of its own. */
export async function runProgram(
  build: Build,
  stage: DemoStage,
  look: () => void,
  signal: AbortSignal,
): Promise<void> {
  const finished = new AbortController()
  const looking = (async () => {
    while (!finished.signal.aborted) {
      look()
      await systemClock.sleep(PROBE_INTERVAL_MS, finished.signal)
    }
    look()
  })()
  const result = await runProcess({
    argv: [process.execPath, bundleOf(build, 'caduceus'), 'run', '--now', '--wait'],
    cwd: stage.root,
    env: stage.environment,
    timeoutMs: RUN_TIMEOUT_MS,
    signal,
  }).finally(() => finished.abort())
  await looking
  const printed = result.stderr.toString('utf8').trim()
  const isTold = result.code === 1 && printed.includes('needs attention')
  if (result.code !== 0 && !isTold)
    throw fault('demo/failed', { reason: printed, path: stage.root })
}
