import { type FaultCode, policyOf } from './fault-catalogue.ts'
import { RUN_STAGES, type RunStage } from './journal.ts'
import type { EventName } from './transitions.ts'

/** A run that a fault kept from advancing. */
export type FaultFacts = Readonly<{
  stage: RunStage
  code: FaultCode
  /** Processes of the run may still be there, so that a second worker must not be started. */
  mayStillAct: boolean
  /** Failures in a row have lasted for longer than is configured. */
  isTooLong: boolean
}>

export type AfterFault =
  /** A later runner goes on with the same stage. `needsAttention`: only a human can end what it waits for. */
  | Readonly<{ kind: 'wait'; needsAttention: boolean }>
  /** The run is over. */
  | Readonly<{ kind: 'end'; on: EventName }>

/** Events after which a new run would be started for the issue. */
const STARTS_AGAIN: ReadonlySet<EventName> = new Set(['infrastructure-failed', 'interrupted'])

/**
 * What a fault does to a run. Before the worker has succeeded the run ends and the issue is requeued; afterwards
 * its work is paid for, so the run waits while the fault may pass, and is never thrown away for a new attempt.
 * Pure.
 */
export function afterFault({ stage, code, mayStillAct, isTooLong }: FaultFacts): AfterFault {
  const policy = policyOf(code)
  // The end itself is never given up: what it says is decided.
  if (stage === 'ended') return { kind: 'wait', needsAttention: false }
  const isReserved = policy.mayPass && mayStillAct
  if (isReserved) return { kind: 'wait', needsAttention: isTooLong && policy.endsPatience }
  // Files that cannot be read or written tell nothing about a worker, which may just have succeeded.
  const isUndecided = stage === 'launching' && code === 'sys/io'
  const isRetained = RUN_STAGES[stage].isPaid || isUndecided
  const mayPass = policy.mayPass && !(isTooLong && policy.endsPatience)
  if (isRetained && mayPass) return { kind: 'wait', needsAttention: false }
  // Paid work that cannot go on by itself needs a human.
  const isStuck = isRetained && STARTS_AGAIN.has(policy.event)
  return { kind: 'end', on: isStuck ? 'blocked' : policy.event }
}
