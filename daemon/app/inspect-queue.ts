import type { CircuitPolicy } from '../core/circuits.ts'
import { evaluateGate } from '../core/gate.ts'
import { PHASES, type QueueEntry, type QueueState } from '../core/queue-state.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openQueue, type QueueParts } from './open-queue.ts'
import { tickSettingsOf } from './settings-of.ts'

/** What `queue list` and `queue show` are made from, read once. */
export type QueueFacts = Readonly<{
  parts: QueueParts
  now: number
  queue: QueueState
  /** Entries that take part of the capacity. */
  atWork: readonly QueueEntry[]
  /** Until when GitHub must not be asked, in milliseconds since the epoch; null = it may be asked. */
  limitedUntil: number | null
  policy: CircuitPolicy
}>

/** Faults: config/*, state/*. */
export function inspectQueue(): QueueFacts {
  const { config } = loadProgramConfig(readEnvironment())
  const parts = openQueue(config, false)
  const now = parts.clock.now()
  const { circuits: policy, pollIntervalMs } = tickSettingsOf(config)
  const queue = parts.store.readQueue()
  const { limitedUntil } = evaluateGate(parts.store.readMeta(), now, pollIntervalMs, true)
  const atWork = Object.values(queue.entries).filter(({ phase }) => PHASES[phase].slot)
  return { parts, now, queue, atWork, limitedUntil, policy }
}
