import type { Journal } from '../core/journal.ts'
import { layoutOf } from '../state/layout.ts'
import { readStarted } from '../supervision/control-run.ts'
import { processesHolding } from '../sys/find-processes.ts'
import {
  childrenOf,
  identifyProcess,
  isAlive,
  type ProcessIdentity,
} from '../sys/process-identity.ts'
import { killIdentity, killSession } from '../sys/terminate.ts'
import type { ProcessName } from './crash-plan.ts'
import type { Ticks } from './demo-ticks.ts'

/** Where the processes of a run are found; null = there is none. */
export function finders(
  stateDir: string,
  ticks: Ticks,
): Readonly<Record<ProcessName, (journal: Journal | null) => ProcessIdentity | null>> {
  const layout = layoutOf(stateDir)
  return {
    tick: ticks.current,
    runner: (journal) => {
      if (journal === null) return null
      if (journal.runner !== null && isAlive(journal.runner)) return journal.runner
      // One that has just taken over is known by the claim it holds; so is the tick that hands it over.
      const holders = processesHolding(layout.claim(journal.key))
      return holders.find(({ pid }) => pid !== ticks.current()?.pid) ?? null
    },
    supervisor: (journal) => {
      if (journal?.stage !== 'launching') return null
      const { runId, treePath } = journal
      const { directory } = layout.run(runId)
      const supervisor = readStarted({ runId, directory, treePath })?.supervisor
      return supervisor !== undefined && isAlive(supervisor) ? supervisor : null
    },
  }
}

export function killOne(target: ProcessIdentity): boolean {
  return killIdentity(target, 'SIGKILL')
}

/** Programs a runner starts lead sessions of their own, so they would go on; here they end with it. */
export function killWithChildren(runner: ProcessIdentity): boolean {
  const children = childrenOf(runner.pid).flatMap((pid) => identifyProcess(pid) ?? [])
  const isHit = killSession(runner) > 0
  for (const child of children) killSession(child)
  return isHit
}
