import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import type { ProcessIdentity } from '../sys/process-identity.ts'
import type { ProcessTree } from './process-tree.ts'

/** Between rounds, while processes act on a signal; where the worker is Node's, Node collects it meanwhile. */
const PAUSE_MS = 20

export type EndedProcesses = Readonly<{
  /** How many processes besides the worker were still there. */
  descendants: number
  /** Pids that remain after the bound; [] = everything is gone and collected. */
  unkillable: readonly number[]
}>

export type Ending = Readonly<{ clock: Clock; tree: ProcessTree; workerPid: number }>

/**
 * Ends every process of a run (PROTOCOLS, Ending processes): TERM to each, a grace of 2 s, then rounds of
 * SIGKILL until two rounds in a row find no process; at most 10 s, then the remaining ones are reported as unkillable.
 */
export async function endProcesses(ending: Ending): Promise<EndedProcesses> {
  const { tree, workerPid } = ending
  const seen = new Map<string, ProcessIdentity>()
  await terminate(ending, seen)
  const isGone = await killInRounds(ending, seen)
  const descendants = [...seen.values()].filter(({ pid }) => pid !== workerPid).length
  return { descendants, unkillable: isGone ? [] : tree.living().map(({ pid }) => pid) }
}

/** Every process is asked once: a second TERM means "at once" to many programs. */
async function terminate({ clock, tree }: Ending, seen: Seen): Promise<void> {
  const until = clock.now() + LIMITS.termGraceMs
  for (;;) {
    tree.reap()
    const living = tree.living()
    for (const process of notYetSeen(living, seen)) tree.signal(process, 'SIGTERM')
    if (living.length === 0 || clock.now() >= until) return
    await clock.sleep(PAUSE_MS)
  }
}

async function killInRounds(ending: Ending, seen: Seen): Promise<boolean> {
  const { clock, tree } = ending
  const until = clock.now() + LIMITS.killBoundMs
  for (let emptyRounds = 0; ; ) {
    killAtOnce(ending, until, seen)
    emptyRounds = tree.living().length === 0 && tree.isEmpty() ? emptyRounds + 1 : 0
    if (emptyRounds === 2) return true
    if (clock.now() >= until) return false
    if (emptyRounds === 0) await clock.sleep(PAUSE_MS)
  }
}

/**
 * Kills without yielding, so that what is being killed cannot fork faster than we search: until two rounds in
 * a row find no process that was not hit yet. One that was hit has no more instructions to run.
 */
function killAtOnce({ clock, tree }: Ending, until: number, seen: Seen): void {
  const hit: Seen = new Map()
  for (let idleRounds = 0; idleRounds < 2 && clock.now() < until; ) {
    const targets = notYetSeen(tree.living(), hit)
    if (targets.length > 0) tree.killGroup()
    for (const target of targets) tree.signal(target, 'SIGKILL')
    tree.reap()
    idleRounds = targets.length === 0 ? idleRounds + 1 : 0
  }
  for (const [key, process] of hit) seen.set(key, process)
}

type Seen = Map<string, ProcessIdentity>

/** Those of the living that are new, which are noted. Numbers are given out again, hence the start. */
function notYetSeen(living: readonly ProcessIdentity[], seen: Seen): readonly ProcessIdentity[] {
  return living.filter((process) => {
    const key = `${process.pid} ${process.startTicks}`
    const isNew = !seen.has(key)
    seen.set(key, process)
    return isNew
  })
}
