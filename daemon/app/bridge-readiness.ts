import { isFault } from '../core/fault.ts'
import { resolveWorkerCommand } from '../engine/resolve-worker-command.ts'

/** Whether the configured worker command could be started now. */
export function bridgeReadiness(
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): 'present' | 'missing' | 'not-executable' {
  try {
    resolveWorkerCommand(command, environment)
    return 'present'
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    return thrown.code === 'worker/command-not-executable' ? 'not-executable' : 'missing'
  }
}
