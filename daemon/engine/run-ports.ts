import type { Executor } from '../core/executor.ts'
import type { RecordedProcess } from '../core/journal.ts'
import type { Claim, Clock, Git, GitHub, Journals, Log, Store } from '../core/ports.ts'
import type { StateLayout } from '../state/layout.ts'
import { workerSecrets } from '../worker/provider-variables.ts'
import type { PromptTemplates } from '../worker/render-prompt.ts'
import type { RunSettings } from './tick-ports.ts'

/** Everything a run works with. */
export type RunPorts = Readonly<{
  clock: Clock
  log: Log
  store: Store
  journals: Journals
  claim: Claim
  github: GitHub
  git: Git
  executor: Executor
  layout: StateLayout
  templates: PromptTemplates
  settings: RunSettings
  /** The daemon's own environment, from which the worker's is picked. */
  environment: Readonly<Record<string, string>>
  /** Values that must not reach the worker under any name. */
  secrets: () => readonly string[]
  self: RecordedProcess
  /** A random number in [0, 1). */
  random: () => number
  /** Aborts when the runner is asked to leave; the run is then adopted later. */
  signal: AbortSignal
}>

/** Every value that must not be read in what leaves: the daemon's own, and what the worker was given. */
export function secretsOf({ secrets, environment, settings }: RunPorts): readonly string[] {
  return [...secrets(), ...workerSecrets(environment, settings.worker.environmentAllowlist)]
}
