import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
import type { ProcessIdentity } from '../sys/process-identity.ts'
import type { ProcessTree } from './process-tree.ts'

/** Between looks while processes act on a signal; Node collects the worker meanwhile. */
const PAUSE_MS = 20

export type EndedProcesses = Readonly<{
  /** How many processes besides the worker were still there. */
  descendants: number
  /** Pids that are left after the bound; [] = everything is gone and collected. */
  unkillable: readonly number[]
}>

export type Ending = Readonly<{ clock: Clock; tree: ProcessTree; workerPid: number }>

/**
 * Ends every process of a run (P§4): TERM to each, a grace of 2 s, then rounds of SIGKILL until two
 * rounds in a row find nobody; at most 10 s, then what is left is reported as unkillable.
 */
export async function endProcesses(ending: Ending): Promise<EndedProcesses> {
  const { tree, workerPid } = ending
  const met = new Map<string, ProcessIdentity>()
  await terminate(ending, met)
  const isGone = await killInRounds(ending, met)
  const descendants = [...met.values()].filter(({ pid }) => pid !== workerPid).length
  return { descendants, unkillable: isGone ? [] : tree.living().map(({ pid }) => pid) }
}

/** Every process is asked once: a second TERM means "at once" to many programs. */
async function terminate({ clock, tree }: Ending, met: Met): Promise<void> {
  const until = clock.now() + LIMITS.termGraceMs
  for (;;) {
    tree.reap()
    const living = tree.living()
    for (const process of notYetMet(living, met)) tree.signal(process, 'SIGTERM')
    if (living.length === 0 || clock.now() >= until) return
    await clock.sleep(PAUSE_MS)
  }
}

async function killInRounds(ending: Ending, met: Met): Promise<boolean> {
  const { clock, tree } = ending
  const until = clock.now() + LIMITS.killBoundMs
  for (let emptyRounds = 0; ; ) {
    killAtOnce(ending, until, met)
    emptyRounds = tree.living().length === 0 && tree.isEmpty() ? emptyRounds + 1 : 0
    if (emptyRounds === 2) return true
    if (clock.now() >= until) return false
    if (emptyRounds === 0) await clock.sleep(PAUSE_MS)
  }
}

/**
 * Kills without giving way, so that what is being killed cannot fork faster than we look: until two
 * looks in a row find nobody who was not hit yet. Who was hit has no more instructions to run.
 */
function killAtOnce({ clock, tree }: Ending, until: number, met: Met): void {
  const hit: Met = new Map()
  for (let idleRounds = 0; idleRounds < 2 && clock.now() < until; ) {
    const targets = notYetMet(tree.living(), hit)
    if (targets.length > 0) tree.killGroup()
    for (const target of targets) tree.signal(target, 'SIGKILL')
    tree.reap()
    idleRounds = targets.length === 0 ? idleRounds + 1 : 0
  }
  for (const [key, process] of hit) met.set(key, process)
}

type Met = Map<string, ProcessIdentity>

/** Those of the living that are new, which are noted. Numbers are given out again, hence the start. */
function notYetMet(living: readonly ProcessIdentity[], met: Met): readonly ProcessIdentity[] {
  return living.filter((process) => {
    const key = `${process.pid} ${process.startTicks}`
    const isNew = !met.has(key)
    met.set(key, process)
    return isNew
  })
}
