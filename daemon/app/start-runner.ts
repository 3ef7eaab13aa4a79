import type { Claim } from '../core/ports.ts'
import type { StateLayout } from '../state/layout.ts'
import { closeDescriptor, ensureDirectory, openToAppend } from '../sys/files.ts'
import type { RunScope } from '../sys/run-scope.ts'
import { spawnDetached } from '../sys/spawn-detached.ts'
import { type Build, bundleOf } from './build.ts'
import { withoutCredentials } from './credentials.ts'

/** Descriptors a runner is given (P§2); the token goes over a pipe, never through its environment. */
export const RUNNER_FDS = { claim: 3, token: 4 } as const satisfies Record<string, number>

/**
 * Starts the detached runner of a claimed run, in a scope of its own where there are scopes, and hands the
 * claim over. The caller closes its own copy.
 * Faults: sys/spawn-failed, sys/process-timeout, sys/io.
 */
export async function startRunner(
  parts: Readonly<{
    build: Build
    layout: StateLayout
    environment: Readonly<Record<string, string>>
    token: string
    scope: RunScope
  }>,
  claim: Claim,
  runId: string,
): Promise<void> {
  const { build, layout, environment, token, scope } = parts
  const paths = layout.run(runId)
  ensureDirectory(paths.directory)
  const output = openToAppend(paths.runnerOutput)
  try {
    await spawnDetached({
      argv: [process.execPath, bundleOf(build, 'runner'), runId],
      env: withoutCredentials(environment, [token]),
      stdio: ['ignore', output, output, claim.fd],
      input: {
        fd: RUNNER_FDS.token,
        // The line end shows the runner that the token came whole: we may die while we write it.
        text: `${token}\n`,
        // It begins nothing without its token, so all that it starts is in the scope as well.
        before: (pid) => scope.enter(pid, `run-${runId}`),
      },
    })
  } finally {
    closeDescriptor(output)
  }
}
