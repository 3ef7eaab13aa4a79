import { bundleOf } from '../app/build.ts'
import { followRuns } from '../app/follow-runs.ts'
import { paint } from '../app/paint.ts'
import { fault } from '../core/fault.ts'
import { openJsonStore } from '../state/json-store.ts'
import { systemClock } from '../sys/clock.ts'
import { runProcess } from '../sys/run-process.ts'
import type { DemoParts } from './demo-parts.ts'
import { DEMO, DEMO_ENDS } from './demo-story.ts'
import type { Kill } from './kill-processes.ts'
import { runThroughCrashes } from './run-through-crashes.ts'

/** Far more than a whole run takes; it only ends a demo that hangs. */
const RUN_TIMEOUT_MS = 120_000
const PROBE_INTERVAL_MS = 100

/**
 * Runs one tick after another, as cron would, until nothing more happens by itself. Returns the phase in which
 * the issue ends. Faults: demo/failed.
 */
export async function runUntilEnd(demo: DemoParts): Promise<string> {
  const { scene, print, signal } = demo
  const printNews = followScene(demo)
  const store = openJsonStore({ clock: systemClock }, scene.stateDir)
  const until = systemClock.now() + RUN_TIMEOUT_MS
  for (;;) {
    await runProgram(demo, printNews)
    const [entry] = Object.values(store.readQueue().entries)
    const phase = entry?.phase ?? 'unknown'
    if (entry?.phase === 'queued') {
      const attempt = `attempt ${entry.attempts} of ${DEMO.attempts} failed`
      const due = `the next one is due at ${entry.nextAttemptAt ?? 'once'}`
      print(`  ${paint.step('•')} ${attempt}; ${due}`)
      const waitMs = Math.max(Date.parse(entry.nextAttemptAt ?? '') - systemClock.now(), 0)
      await systemClock.sleep(waitMs, signal)
    }
    if (DEMO_ENDS.includes(phase)) return phase
    if (systemClock.now() > until) {
      throw fault('demo/failed', { reason: `the issue is ${phase}`, path: scene.root })
    }
  }
}

/**
 * The same while the daemon's processes are killed by the plan that follows from the seed.
 * @param onKill receives each kill as it happens
 */
export async function crashUntilEnd(
  demo: DemoParts,
  seed: number,
  onKill: (kill: Kill) => void,
): Promise<string> {
  const { print } = demo
  print(`  its processes are killed at random moments; again in the same way with --seed ${seed}`)
  const printKill = (kill: Kill): void => {
    onKill(kill)
    const target = `${kill.process} (pid ${kill.pid})`
    print(`  ${paint.bad('✗')} killed the ${target} while it ${kill.during}`)
  }
  const until = systemClock.now() + RUN_TIMEOUT_MS
  return runThroughCrashes(demo, { seed, until }, printKill, followScene(demo))
}

function followScene({ scene, print }: DemoParts): () => void {
  return followRuns(scene.stateDir, (line, origin) => {
    print(
      origin === 'daemon' ? `  ${paint.step('•')} ${line}` : `      ${paint.quiet('│')} ${line}`,
    )
  })
}

/**
 * Runs one tick of the built program to its end. Faults: demo/failed.
 * @param printNews called again and again while it runs, and once afterwards
 */
export async function runProgram(demo: DemoParts, printNews: () => void): Promise<void> {
  const { build, scene, signal } = demo
  const finished = new AbortController()
  const printing = (async () => {
    while (!finished.signal.aborted) {
      printNews()
      await systemClock.sleep(PROBE_INTERVAL_MS, finished.signal)
    }
    printNews()
  })()
  const result = await runProcess({
    argv: [process.execPath, bundleOf(build, 'caduceus'), 'run', '--now', '--wait'],
    cwd: scene.root,
    env: scene.environment,
    timeoutMs: RUN_TIMEOUT_MS,
    signal,
  }).finally(() => finished.abort())
  await printing
  const printed = result.stderr.toString('utf8').trim()
  const needsAttention = result.code === 1 && printed.includes('needs attention')
  if (result.code === 0 || needsAttention) return
  throw fault('demo/failed', { reason: printed, path: scene.root })
}
