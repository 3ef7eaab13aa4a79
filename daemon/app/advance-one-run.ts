import { join } from 'node:path'
import { countEffects } from '../core/effects.ts'
import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { advanceRun, type RunEnd } from '../engine/advance-run.ts'
import { openJournals } from '../state/journals.ts'
import { trustedHost } from '../supervision/trusted-host.ts'
import { readDescriptor } from '../sys/drain-descriptor.ts'
import { announceEffect } from '../sys/effect-channel.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { readFileBounded } from '../sys/files.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import { setNonDumpable } from '../sys/native.ts'
import { ownIdentity } from '../sys/process-identity.ts'
import { PROMPT_FILES, type PromptTemplates } from '../worker/render-prompt.ts'
import { type Build, bundleOf } from './build.ts'
import { supervisorEnvironment, withHostSecrets } from './credentials.ts'
import { loadProgramConfig } from './load-program-config.ts'
import { openPorts } from './open-ports.ts'
import { runSettingsOf } from './settings-of.ts'
import { RUNNER_FDS } from './start-runner.ts'

/** Tokens are short; more than this on the pipe is not one. */
const TOKEN_BYTES = 4096
const TOKEN_WAIT_MS = 5000

/**
 * The work of a runner process: takes over the claim it was handed and carries the run on. Returns null
 * when the descriptor is not the current claim, or the token did not come whole: the run is somebody
 * else's to begin.
 * Faults: config/*, state/*, sys/io.
 */
export async function advanceOneRun(build: Build, runId: string): Promise<RunEnd | null> {
  setNonDumpable()
  const handed = readDescriptor(RUNNER_FDS.token, TOKEN_BYTES, TOKEN_WAIT_MS)
  // A tick that died while it handed the token over: the run stays at `starting`, and the next tick requeues it.
  if (handed === null || !handed.endsWith('\n')) return null
  const own = readEnvironment()
  const { config } = loadProgramConfig(own)
  const environment = withHostSecrets(own, config)
  // The first signal: the step in hand is finished, and the next tick adopts the run. The second: at once.
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

/** The prompt texts of the installed build. Faults: sys/io when one is missing. */
export function readPromptTemplates(build: Build): PromptTemplates {
  const read = (name: string): string => {
    const path = join(build.templates, name)
    const bytes = readFileBounded(path, LIMITS.configurationBytes)
    if (bytes !== null) return bytes.toString('utf8')
    throw fault('sys/io', { operation: 'Reading', path, reason: 'it is missing' })
  }
  return {
    frame: read(PROMPT_FILES.frame),
    behaviour: { code: read(PROMPT_FILES.code), investigation: read(PROMPT_FILES.investigation) },
  }
}
