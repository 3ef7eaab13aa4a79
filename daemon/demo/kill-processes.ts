import type { Journal, RunStage } from '../core/journal.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { systemClock } from '../sys/clock.ts'
import { type PlannedKill, type ProcessName, VICTIMS } from './crash-plan.ts'
import { activityOf, isInReach, isMissed, locationOf } from './crash-position.ts'
import type { Ticks } from './demo-ticks.ts'
import { finders, killOne, killWithChildren } from './find-victims.ts'
import type { DemoStage } from './scene.ts'

// `demo --crash`: the planned blows fall on the real processes while they do the demo's job.
export type Kill = Readonly<{
  process: ProcessName
  pid: number
  /** How far the run had come, as its journal says; null = there was no run yet. */
  stage: RunStage | null
  /** What the process did just then, for people. */
  during: string
}>

export type Scene = Readonly<{ entry: QueueEntry | null; journal: Journal | null }>

type Attacker = Readonly<{ look: () => Scene; strike: (scene: Scene) => readonly Kill[] }>

/** One blow after the other, each as soon as its place in the run is reached and its delay is over. */
export function openAttacker(
  stage: DemoStage,
  plan: readonly PlannedKill[],
  ticks: Ticks,
): Attacker {
  const journals = openJournals(stage.stateDir)
  const store = openJsonStore({ clock: systemClock }, stage.stateDir)
  const find = finders(stage.stateDir, ticks)
  const left = [...plan]
  let lastLocation = ''
  let firesAt: number | null = null
  return {
    look: () => {
      const runId = journals.list().at(-1)
      const [entry = null] = Object.values(store.readQueue().entries)
      return { entry, journal: runId === undefined ? null : journals.read(runId) }
    },
    strike: ({ journal }) => {
      const [blow] = left
      if (blow === undefined) return []
      const { processes, takesChildren } = VICTIMS[blow.victim]
      const [first] = processes
      if (isMissed(journal, blow, systemClock.now())) {
        left.shift()
        firesAt = null
        return []
      }
      // Only a run that has come further is struck again: being taken over for ever is another story.
      const isNew = blow.after === null || locationOf(journal) !== lastLocation
      if (firesAt === null) {
        const isReady = isNew && isInReach(journal, blow) && find[first](journal) !== null
        if (isReady) firesAt = systemClock.now() + blow.delayMs
        return []
      }
      if (systemClock.now() < firesAt) return []
      firesAt = null
      if (!isInReach(journal, blow)) return []
      const hit = processes.flatMap((name) => {
        const target = find[name](journal)
        const kill = takesChildren && name === 'runner' ? killWithChildren : killOne
        return target !== null && kill(target) ? [{ process: name, pid: target.pid }] : []
      })
      // Read once more: the dead write nothing now, so this is where they were struck.
      const struck = journal === null ? null : journals.read(journal.runId)
      if (hit.length > 0) left.shift()
      if (hit.length > 0 && blow.after !== null) lastLocation = locationOf(struck)
      return hit.map((each) => ({
        ...each,
        stage: struck?.stage ?? null,
        during: activityOf(each.process, struck),
      }))
    },
  }
}
