import type { Build } from '../app/build.ts'
import { fault } from '../core/fault.ts'
import { systemClock } from '../sys/clock.ts'
import { planKills } from './crash-plan.ts'
import { DEMO_ENDS } from './demo-story.ts'
import { openTicks } from './demo-ticks.ts'
import type { GitHubCounts } from './exactly-once.ts'
import { type Kill, openAttacker, type Scene } from './kill-processes.ts'
import type { DemoStage } from './scene.ts'

/** What a demo with crashes tells besides. */
export type CrashReport = Readonly<{ seed: number; kills: readonly Kill[]; counts: GitHubCounts }>

/** Short enough to see every stage of a run that takes a second or two. */
const PROBE_INTERVAL_MS = 10

/**
 * Carries the demo's issue to its end, one tick after another, while the planned blows fall; returns the
 * phase it ends in. Hits only ticks it started, and runners and supervisors on record in the demo's own
 * state directory, by their identity.
 * @param look called often, to tell what happens
 * @param until milliseconds since the epoch; after this the demo is stuck
 * Faults: demo/failed, sys/spawn-failed.
 */
export async function runThroughCrashes(
  build: Build,
  stage: DemoStage,
  plan: Readonly<{ seed: number; until: number; signal: AbortSignal }>,
  onKill: (kill: Kill) => void,
  look: () => void,
): Promise<string> {
  const ticks = openTicks(build, stage)
  const attacker = openAttacker(stage, planKills(plan.seed), ticks)
  try {
    for (;;) {
      const scene = attacker.look()
      const kills = attacker.strike(scene)
      look() // what the killed have still written comes first
      for (const kill of kills) onKill(kill)
      const phase = scene.entry?.phase ?? 'unknown'
      const isOver = DEMO_ENDS.includes(phase) && scene.journal?.stage === 'settled'
      if (isOver && ticks.current() === null) return phase
      if (plan.signal.aborted) throw fault('sys/process-aborted', { program: 'The demo' })
      if (systemClock.now() > plan.until) {
        const said = ticks.said() === '' ? '' : `; the last tick said: ${ticks.said()}`
        throw fault('demo/failed', { reason: `the issue is ${phase}${said}`, path: stage.root })
      }
      if (!isOver) await ticks.keepOne(dueAt(scene))
      await systemClock.sleep(PROBE_INTERVAL_MS)
    }
  } finally {
    ticks.end()
  }
}

/** Milliseconds since the epoch before which a tick would find nothing to do. */
function dueAt({ entry, journal }: Scene): number {
  const wait = entry?.phase === 'queued' ? entry.nextAttemptAt : (journal?.notBefore ?? null)
  return wait === null ? 0 : Date.parse(wait)
}
