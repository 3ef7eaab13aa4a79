import { fault } from '../core/fault.ts'
import { systemClock } from '../sys/clock.ts'
import { planKills } from './crash-plan.ts'
import type { DemoParts } from './demo-parts.ts'
import { DEMO_ENDS } from './demo-story.ts'
import { openTicks } from './demo-ticks.ts'
import type { GitHubCounts } from './exactly-once.ts'
import { type Kill, openKiller, type Progress } from './kill-processes.ts'

/** What the report of a demo with crashes holds besides. */
export type CrashReport = Readonly<{ seed: number; kills: readonly Kill[]; counts: GitHubCounts }>

/** Short enough to see every stage of a run that takes a second or two. */
const PROBE_INTERVAL_MS = 10

/**
 * Runs one tick after another until the issue has come to its end, and kills processes by the plan meanwhile.
 * Kills only ticks that it started, and runners and supervisors recorded in the demo's own state directory, by
 * their identity. Returns the phase in which the issue ends.
 * @param plan `until`: milliseconds since the epoch; after this the demo hangs
 * @param printNews called often, to print what has happened
 * Faults: demo/failed, sys/spawn-failed, sys/process-aborted.
 */
export async function runThroughCrashes(
  { build, scene, signal }: DemoParts,
  plan: Readonly<{ seed: number; until: number }>,
  onKill: (kill: Kill) => void,
  printNews: () => void,
): Promise<string> {
  const ticks = openTicks(build, scene)
  const killer = openKiller(scene, planKills(plan.seed), ticks)
  try {
    for (;;) {
      const progress = killer.readProgress()
      const kills = killer.killNext(progress)
      printNews() // what the killed processes wrote before comes first
      for (const kill of kills) onKill(kill)
      const phase = progress.entry?.phase ?? 'unknown'
      const isOver = DEMO_ENDS.includes(phase) && progress.journal?.stage === 'settled'
      if (isOver && ticks.current() === null) return phase
      if (signal.aborted) throw fault('sys/process-aborted', { program: 'The demo' })
      if (systemClock.now() > plan.until) {
        const output = ticks.output() === '' ? '' : `; the last tick said: ${ticks.output()}`
        throw fault('demo/failed', { reason: `the issue is ${phase}${output}`, path: scene.root })
      }
      if (!isOver) await ticks.startNext(dueAt(progress))
      await systemClock.sleep(PROBE_INTERVAL_MS)
    }
  } finally {
    ticks.end()
  }
}

/** Milliseconds since the epoch before which a tick would find nothing to do. */
function dueAt({ entry, journal }: Progress): number {
  const wait = entry?.phase === 'queued' ? entry.nextAttemptAt : (journal?.notBefore ?? null)
  return wait === null ? 0 : Date.parse(wait)
}
