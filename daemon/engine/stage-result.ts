import type { Fault } from '../core/fault.ts'
import type { Journal } from '../core/journal.ts'
import type { PhaseEvent } from '../core/transitions.ts'

/** How a stage of a run came out, when nothing failed. What failed is thrown, and sorted in `advance-run.ts`. */
export type StageResult =
  /** The journal is durable and stands at the next stage, or further on in the same one. */
  | Readonly<{ kind: 'next'; journal: Journal }>
  /** It goes on later; `reason` says why, and until when where it knows. */
  | Readonly<{ kind: 'wait'; journal: Journal; reason: Fault }>
  /** The run is over before its end, for a reason that is none of its own. */
  | Readonly<{ kind: 'end'; journal: Journal; event: PhaseEvent }>
  /** The runner was asked to leave; the worker goes on and the next tick adopts the run. */
  | Readonly<{ kind: 'left' }>

export const next = (journal: Journal): StageResult => ({ kind: 'next', journal })

export const wait = (journal: Journal, reason: Fault): StageResult => ({
  kind: 'wait',
  journal,
  reason,
})

export const end = (journal: Journal, event: PhaseEvent): StageResult => ({
  kind: 'end',
  journal,
  event,
})

export const LEFT: StageResult = { kind: 'left' }
