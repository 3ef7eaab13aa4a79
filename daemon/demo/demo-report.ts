import type { CrashReport } from './run-through-crashes.ts'

export type DemoOptions = Readonly<{
  investigate: boolean
  dryRun: boolean
  fail: boolean
  /** What the random kills of the daemon's processes follow from; null = it is left alone. */
  crashSeed: number | null
  /** Folder to keep everything in, or null. */
  keep: string | null
}>

export type DemoReport = Readonly<{
  phase: string
  pull: number | null
  issueState: string
  comments: number
  /** Of the project's test on what was published; null when nothing was. */
  testPasses: boolean | null
  keptIn: string | null
}> &
  Partial<CrashReport>

export type Print = (line: string) => void
