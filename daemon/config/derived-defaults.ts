import type { ConfigKey } from './schema.ts'

/** Defaults that depend on the machine or on other keys; docs/configuration.md prints the texts. */
export const DERIVED_DEFAULTS = {
  state_dir: '`$HERMES_HOME/caduceus-state`, else `~/.hermes/caduceus-state`',
  log_path: '`processor.log` in state_dir',
  repo_storage_root: '`repos` in state_dir',
  worker_command: '`$HERMES_HOME/caduceus/worker-bridge.py`; none without Hermes: it must be set',
  max_issues_per_tick: 'worker_parallelism × 4',
} as const satisfies Partial<Record<ConfigKey, string>>
