import type { Journal, RunStage } from '../core/journal.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { systemClock } from '../sys/clock.ts'
import { type PlannedKill, type ProcessName, VICTIMS } from './crash-plan.ts'
import { activityOf, isInReach, isMissed, locationOf } from './crash-position.ts'
import type { Ticks } from './demo-ticks.ts'
import { finders, killOne, killWithChildren } from './find-victims.ts'
import type { DemoScene } from './scene.ts'

/** A process that was killed. */
export type Kill = Readonly<{
  process: ProcessName
  pid: number
  /** The stage of the run, by its journal; null = there was no run yet. */
  stage: RunStage | null
  /** What the process did at that moment, for people. */
  during: string
}>

/** How far the demo's only issue has come. */
export type Progress = Readonly<{ entry: QueueEntry | null; journal: Journal | null }>

type Killer = Readonly<{
  readProgress: () => Progress
  /** Performs the next planned kill when its point in the run is reached and its delay is over. */
  killNext: (progress: Progress) => readonly Kill[]
}>

/** Performs the planned kills one after another, on the processes that do the demo's work. */
export function openKiller(
  { stateDir }: DemoScene,
  plan: readonly PlannedKill[],
  ticks: Ticks,
): Killer {
  const journals = openJournals(stateDir)
  const store = openJsonStore({ clock: systemClock }, stateDir)
  const find = finders(stateDir, ticks)
  const remaining = [...plan]
  let lastLocation = ''
  let firesAt: number | null = null
  return {
    readProgress: () => {
      const runId = journals.list().at(-1)
      const [entry = null] = Object.values(store.readQueue().entries)
      return { entry, journal: runId === undefined ? null : journals.read(runId) }
    },
    killNext: ({ journal }) => {
      const [planned] = remaining
      if (planned === undefined) return []
      const { processes, takesChildren } = VICTIMS[planned.victim]
      const [first] = processes
      if (isMissed(journal, planned, systemClock.now())) {
        remaining.shift()
        firesAt = null
        return []
      }
      // A run is hit again only after it has come further; else it would be adopted again and again.
      const isNew = planned.after === null || locationOf(journal) !== lastLocation
      if (firesAt === null) {
        const isReady = isNew && isInReach(journal, planned) && find[first](journal) !== null
        if (isReady) firesAt = systemClock.now() + planned.delayMs
        return []
      }
      if (systemClock.now() < firesAt) return []
      firesAt = null
      if (!isInReach(journal, planned)) return []
      const hit = processes.flatMap((name) => {
        const target = find[name](journal)
        const kill = takesChildren && name === 'runner' ? killWithChildren : killOne
        return target !== null && kill(target) ? [{ process: name, pid: target.pid }] : []
      })
      // Read again: dead processes write nothing more, so this is the point at which they were killed.
      const last = journal === null ? null : journals.read(journal.runId)
      if (hit.length > 0) remaining.shift()
      if (hit.length > 0 && planned.after !== null) lastLocation = locationOf(last)
      return hit.map((each) => ({
        ...each,
        stage: last?.stage ?? null,
        during: activityOf(each.process, last),
      }))
    },
  }
}
