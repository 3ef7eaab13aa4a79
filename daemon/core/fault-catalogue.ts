import { COMMAND_FAULTS } from './command-faults.ts'
import { CONFIG_FAULTS } from './config-faults.ts'
import { GIT_FAULTS } from './git-faults.ts'
import { GITHUB_FAULTS } from './github-faults.ts'
import { PUBLISH_FAULTS } from './publish-faults.ts'
import { STATE_FAULTS } from './state-faults.ts'
import { SYSTEM_FAULTS } from './system-faults.ts'
import { WORKER_FAULTS } from './worker-faults.ts'

// Every fault there is: what class it has, what it says, and what to do next. docs/lifecycle.md is made from
// this table and tests walk it.

export const FAULTS = {
  ...CONFIG_FAULTS,
  ...STATE_FAULTS,
  ...SYSTEM_FAULTS,
  ...GITHUB_FAULTS,
  ...GIT_FAULTS,
  ...WORKER_FAULTS,
  ...PUBLISH_FAULTS,
  ...COMMAND_FAULTS,
} as const

export type FaultCode = keyof typeof FAULTS
