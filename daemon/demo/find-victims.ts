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

/** Finds the daemon's processes that are at work for a run; null = there is none of that kind. */
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
      // A runner that has just adopted the run is known only by the claim it holds. So is the tick that hands
      // the claim over, which is left out here.
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

/** True = the process was killed by this call. */
export function killOne(target: ProcessIdentity): boolean {
  return killIdentity(target, 'SIGKILL')
}

/** Kills a runner together with the programs it started, which lead sessions of their own. */
export function killWithChildren(runner: ProcessIdentity): boolean {
  const children = childrenOf(runner.pid).flatMap((pid) => identifyProcess(pid) ?? [])
  const isHit = killSession(runner) > 0
  for (const child of children) killSession(child)
  return isHit
}
