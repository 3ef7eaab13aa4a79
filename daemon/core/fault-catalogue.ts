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
