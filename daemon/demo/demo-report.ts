import type { CrashReport } from './run-through-crashes.ts'

export type DemoOptions = Readonly<{
  investigate: boolean
  dryRun: boolean
  fail: boolean
  /** Seed of the planned kills; null = no process is killed. */
  crashSeed: number | null
  /** Folder in which everything is kept; null = a temporary one. */
  keep: string | null
}>

export type DemoReport = Readonly<{
  phase: string
  pull: number | null
  issueState: string
  comments: number
  /** Whether the project's tests pass on the published change; null = nothing was published. */
  testPasses: boolean | null
  keptIn: string | null
}> &
  Partial<CrashReport>
