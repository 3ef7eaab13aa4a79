import { countEffects } from '../core/effects.ts'
import { fault } from '../core/fault.ts'
import { carryRun, type RunEnd } from '../engine/carry-run.ts'
import { trustedHost } from '../executor/trusted-host.ts'
import { openJournals } from '../state/journals.ts'
import { systemClock } from '../sys/clock.ts'
import { readDescriptor } from '../sys/drain-descriptor.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { setNonDumpable } from '../sys/native.ts'
import { ownIdentity } from '../sys/process-identity.ts'
import { type Build, bundleOf } from './build.ts'
import { supervisorEnvironment } from './clean-environment.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openPorts } from './open-ports.ts'
import { readPromptTemplates } from './prompt-templates.ts'
import { runSettingsOf } from './settings-of.ts'
import { RUNNER_FDS } from './start-runner.ts'

/** Tokens are short; more than this on the pipe is not one. */
const TOKEN_BYTES = 4096
const TOKEN_WAIT_MS = 5000

/**
 * The work of a runner process: takes over the claim it was handed and carries the run on. Returns null
 * when the descriptor is not the current claim, or the token did not come whole: the run is somebody
 * else's to begin.
 * @param signal aborts when the process is asked to leave
 * Faults: config/*, state/*, sys/io.
 */
export async function carryOneRun(
  build: Build,
  runId: string,
  signal: AbortSignal,
): Promise<RunEnd | null> {
  setNonDumpable()
  const handed = await readDescriptor(systemClock, RUNNER_FDS.token, TOKEN_BYTES, TOKEN_WAIT_MS)
  // A tick that died while it handed the token over: the run stays at `starting`, and the next tick requeues it.
  if (handed === null || !handed.endsWith('\n')) return null
  const environment = readEnvironment()
  const { config } = loadProgramConfig(environment)
  const journal = openJournals(config.stateDir).read(runId)
  if (journal === null)
    throw fault('internal/unexpected', { reason: `run ${runId} has no journal` })

  const ports = openPorts({
    config,
    environment,
    build,
    process: 'runner',
    token: handed.trim(),
  })
  const claim = ports.claims.inherit(RUNNER_FDS.claim, journal.key, runId)
  if (claim === null) return null
  const executor = trustedHost({
    clock: ports.clock,
    argv: [process.execPath, bundleOf(build, 'supervisor')],
    environment: supervisorEnvironment(environment),
    logPath: ports.layout.run(runId).runnerOutput,
  })
  return carryRun(
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
