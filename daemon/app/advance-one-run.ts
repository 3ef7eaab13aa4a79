import { countEffects } from '../core/effects.ts'
import { fault } from '../core/fault.ts'
import { advanceRun, type RunEnd } from '../engine/advance-run.ts'
import { openJournals } from '../state/journals.ts'
import { trustedHost } from '../supervision/trusted-host.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import { ownIdentity } from '../sys/process-identity.ts'
import { setNonDumpable } from '../sys/protect-process.ts'
import { readDescriptor } from '../sys/read-descriptor.ts'
import { type Build, bundleOf } from './build.ts'
import { supervisorEnvironment, withHostSecrets } from './credentials.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openPorts } from './open-ports.ts'
import { readPromptTemplates } from './read-prompt-templates.ts'
import { runSettingsOf } from './settings-of.ts'
import { RUNNER_FDS } from './start-runner.ts'

/** More bytes than this on the pipe are not a token. */
const TOKEN_BYTES = 4096

const TOKEN_WAIT_MS = 5000

/**
 * The work of a runner process: takes over the claim it was handed and advances the run to its
 * end. Returns null when the descriptor is not the current claim, or when the token is incomplete: then the
 * next tick starts the run.
 * Faults: config/*, state/*, sys/io.
 */
export async function advanceOneRun(build: Build, runId: string): Promise<RunEnd | null> {
  setNonDumpable()
  const handed = readDescriptor(RUNNER_FDS.token, TOKEN_BYTES, TOKEN_WAIT_MS)
  // The tick died while it handed the token over. The run stays at `starting`, and the next tick requeues it.
  if (handed === null || !handed.endsWith('\n')) return null
  const own = readEnvironment()
  const { config } = loadProgramConfig(own)
  const environment = withHostSecrets(own, config)
  // After the first signal the current step is finished and the next tick adopts the run; the second ends at once.
  const { signal } = leaveOnSignal(config.drainTimeoutSeconds * 1000)
  const journal = openJournals(config.stateDir).read(runId)
  if (journal === null)
    throw fault('internal/unexpected', { reason: `run ${runId} has no journal` })

  const ports = openPorts({
    config,
    environment,
    build,
    process: 'runner',
    token: handed.trim(),
    timeLeftMs: () => Number.POSITIVE_INFINITY,
  })
  const claim = ports.claims.inherit(RUNNER_FDS.claim, journal.key, runId)
  if (claim === null) return null
  const executor = trustedHost({
    clock: ports.clock,
    argv: [process.execPath, bundleOf(build, 'supervisor')],
    environment: supervisorEnvironment(own),
    logPath: ports.layout.run(runId).runnerOutput,
  })
  return advanceRun(
    {
      ...ports,
      claim,
      signal,
      executor: countEffects('executor', executor, announceEffect),
      templates: readPromptTemplates(build),
      settings: runSettingsOf(config),
      environment,
      secrets: ports.token.known,
      self: ownIdentity(),
    },
    journal,
  )
}
