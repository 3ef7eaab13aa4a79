import { FAULT_CLASSES, type FaultPolicy } from './fault-classes.ts'
import { OUTSIDE_FAULTS } from './outside-faults.ts'
import { RUN_FAULTS } from './run-faults.ts'
import { SETUP_FAULTS } from './setup-faults.ts'

// Every fault there is: what class it has, what it says, and what to do next. docs/lifecycle.md is made from
// this table and tests walk it.

export const FAULTS = {
  ...SETUP_FAULTS,
  ...OUTSIDE_FAULTS,
  ...RUN_FAULTS,
} as const

export type FaultCode = keyof typeof FAULTS

/** Whether a recorded code is one of this version. */
export function isFaultCode(code: string): code is FaultCode {
  return Object.hasOwn(FAULTS, code)
}

/** What the program does about a fault, by its class. */
export function policyOf(code: FaultCode): FaultPolicy {
  return FAULT_CLASSES[FAULTS[code].class]
}
