// All processes of a run (PROTOCOLS, Ending processes). The supervisor has one child of its own, the worker, whose
// end sys/spawn-worker.ts reports; everything else it adopts as the subreaper and has to collect itself.

import {
  childrenOf,
  identifyProcess,
  listProcesses,
  ownIdentity,
  type ProcessIdentity,
} from '../sys/process-identity.ts'
import { reap } from '../sys/reap.ts'
import { killIdentity } from '../sys/terminate.ts'
import type { WorkerProcess } from '../sys/worker-process.ts'

/** What ending a run needs of the system. */
export type ProcessTree = Readonly<{
  /** Every living process of the run, the worker included. */
  living(): readonly ProcessIdentity[]
  signal(identity: ProcessIdentity, signal: NodeJS.Signals): void
  /** SIGKILLs the worker's process group, if the worker is not collected yet. */
  killGroup(): void
  /** Collects what has ended; of the worker only where it is not Node's. */
  reap(): void
  /** No child is left, ended ones included; the worker is not counted until its end was seen. */
  isEmpty(): boolean
}>

/**
 * The processes below this one.
 * @param worker its pid, and whether its end was seen
 * @param isSubreaper false where orphans do not come to us: then the worker's session is searched too
 */
export function ownProcessTree(
  worker: Pick<WorkerProcess, 'pid' | 'collect' | 'killGroup'> &
    Readonly<{ isCollected: () => boolean }>,
  isSubreaper: boolean,
): ProcessTree {
  const self = ownIdentity()
  // Without orphans the worker is the only child, and a search may itself start and end one (ps), which
  // wakes us to search again, for ever.
  const others = (): readonly number[] =>
    isSubreaper
      ? childrenOf(self.pid).filter((pid) => pid !== worker.pid || worker.isCollected())
      : []
  const strays = (): readonly ProcessIdentity[] =>
    isSubreaper ? [] : sessionMembers(worker.pid, self.bootId)

  return {
    living: () => [...descendantsOf(self.pid), ...strays()],
    signal: killIdentity,
    killGroup: worker.killGroup,
    reap: () => {
      worker.collect()
      for (const pid of others()) reap(pid)
    },
    isEmpty: () => others().length === 0,
  }
}

function descendantsOf(root: number): readonly ProcessIdentity[] {
  const pending = childrenOf(root)
  const found: ProcessIdentity[] = []
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    const identity = identifyProcess(pid)
    if (identity === null) continue
    found.push(identity)
    pending.push(...childrenOf(pid))
  }
  return found
}

/** The session's number stays taken while a member lives, so it cannot mean another session here. */
function sessionMembers(session: number, bootId: string): readonly ProcessIdentity[] {
  return listProcesses()
    .filter((entry) => entry.session === session && !entry.isZombie)
    .map((entry) => ({ pid: entry.pid, startTicks: entry.startTicks, session, bootId }))
}
