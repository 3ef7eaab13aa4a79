import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import type { RecordedProcess } from '../../daemon/core/journal.ts'

// A process of ours inside one process: it goes on only when it is told to, as far as it is told to, and can die
// at any call of a port. What it holds is freed by its death, and its code is never heard of again.

export class SimulatedCrash extends Error {}

/** Where a process dies: at its n-th call, or write to the outside, from now; late: with its request on the way. */
export type Crash = Readonly<{
  at: number
  of: 'call' | 'write'
  when: 'before' | 'after' | 'late'
}>

const WRITES: ReadonlySet<string> = new Set([
  'pushNewBranch',
  'createPullRequest',
  'createComment',
  'deleteComment',
  'removeLabel',
  'closeIssue',
  'reopenIssue',
])

export type ModelProcess = ReturnType<typeof makeProcess>

type ProcessHooks = Readonly<{
  onDeath: (process: ModelProcess) => void
  /** The request of the next call is to be on its way when its process dies. */
  onLate: () => void
}>

/** Made, and not begun. */
export function makeProcess(
  kind: 'tick' | 'runner',
  pid: number,
  runId: string | null,
  hooks: ProcessHooks,
) {
  const turns: (() => void)[] = []
  const leaving = new AbortController()
  const made = { call: 0, write: 0 }
  const allowed = { calls: 0 }
  let crash: Crash | null = null
  const self = {
    kind,
    pid,
    runId,
    state: 'ready' as 'ready' | 'alive' | 'over' | 'dead',
    identity: { pid, startTicks: 1, bootId: 'boot', session: pid } satisfies RecordedProcess,
    leaving,
    epoch: null as number | null,
    isLiving: (): boolean => self.state === 'ready' || self.state === 'alive',
    /** Lets it go on for so many calls, and die on the way. */
    allow(more: number, dying: Crash | null): void {
      allowed.calls = more
      crash = dying === null ? null : { ...dying, at: made[dying.of] + dying.at }
      for (const turn of turns.splice(0)) turn()
    },
    /** Until it is allowed to go on again. */
    async turn(): Promise<void> {
      await new Promise<void>((resolve) => turns.push(resolve))
    },
    async pass(): Promise<void> {
      while (allowed.calls <= 0) await self.turn()
      allowed.calls -= 1
    },
    /** A process that is gone does nothing more, whatever its code would still like to do. */
    observe({ when, method }: Effect): void {
      if (self.state === 'dead') throw new SimulatedCrash()
      const isWrite = WRITES.has(method)
      if (when === 'before') made.call += 1
      if (when === 'before' && isWrite) made.write += 1
      if (crash === null || made[crash.of] !== crash.at || (crash.of === 'write' && !isWrite))
        return
      if (crash.when === 'late' && when === 'before') hooks.onLate()
      if ((crash.when === 'before') !== (when === 'before')) return
      self.die()
      throw new SimulatedCrash()
    },
    die(): void {
      self.state = 'dead'
      turns.length = 0
      hooks.onDeath(self)
    },
    end(): void {
      self.state = 'over'
      hooks.onDeath(self)
    },
  }
  return self
}

/** A port as one process has it: each call is counted, and asynchronous ones wait for their turn. */
export function portOf<P extends object>(
  process: ModelProcess,
  name: string,
  port: P,
  waiting: readonly (keyof P)[],
): P {
  const paced = Object.fromEntries(
    waiting.map((method) => {
      const original = port[method] as (...args: unknown[]) => Promise<unknown>
      const call = async (...args: unknown[]): Promise<unknown> => {
        await process.pass()
        return original(...args)
      }
      return [method, call]
    }),
  )
  const counted = countEffects(name, { ...port, ...paced }, (effect) => process.observe(effect))
  // A crash is a rejection, so that of calls made side by side none is left without a listener.
  const rejecting = Object.fromEntries(
    waiting.map((method) => {
      const original = counted[method] as (...args: unknown[]) => Promise<unknown>
      return [method, async (...args: unknown[]): Promise<unknown> => original(...args)]
    }),
  ) as Partial<P>
  return { ...pick(counted, port), ...rejecting }
}

/** Its methods as plain values. */
function pick<P extends object>(counted: P, port: P): P {
  return Object.fromEntries(
    (Object.keys(port) as (keyof P)[]).map((name) => [name, counted[name]]),
  ) as P
}
