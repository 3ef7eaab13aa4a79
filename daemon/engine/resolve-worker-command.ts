import { fault } from '../core/fault.ts'
import { fileStatus } from '../sys/files.ts'
import { findProgram } from '../sys/find-program.ts'

/**
 * The worker command with its program found, before anything is spent on the run.
 * Faults: worker/command-missing, worker/command-not-executable.
 */
export function resolveWorkerCommand(
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): readonly [string, ...string[]] {
  const [program, ...args] = command
  const found = findProgram(program, environment)
  if (found !== null) return [found, ...args]
  const code =
    program.includes('/') && fileStatus(program) !== null
      ? 'worker/command-not-executable'
      : 'worker/command-missing'
  throw fault(code, { program })
}
