import type { ConfigInspection } from '../config/load-config.ts'
import type { Config } from '../config/make-config.ts'
import { refreshWrapper, wrapperPartsOf } from '../host/cron-wrapper.ts'
import { openJsonStore } from '../state/json-store.ts'
import { prepareDirectories } from '../state/prepare-directories.ts'
import { systemClock } from '../sys/clock.ts'
import { fileStatus } from '../sys/files.ts'
import { describeBridge } from './bridge-state.ts'
import type { Build } from './build.ts'
import { collectUnused, launchedBuild, readBuildInfo } from './builds.ts'
import { createLabels } from './create-labels.ts'
import { openSetup, type Setup, type SetupOptions } from './open-setup.ts'
import { seedBridge } from './seed-bridge.ts'
import { setUpConfiguration } from './set-up-configuration.ts'
import { attempt, done, type SetupReport, type SetupSteps } from './setup-report.ts'

/**
 * Makes what an installation needs besides its build. What exists already is not changed. A step that fails
 * does not stop the others, and setup may be run again at any time.
 * Faults: config/environment when HERMES_HOME is no absolute path.
 */
export async function runSetup(build: Build, options: SetupOptions): Promise<SetupReport> {
  const setup = openSetup(build, options.dryRun)
  const { steps: configured, inspection } = setUpConfiguration(setup)
  const config = inspection.kind === 'valid' ? inspection.loaded.config : null
  const steps = [
    ...(await attempt('build', () => inspectBuild(setup))),
    ...configured,
    ...(await attempt('bridge', () => setUpBridge(setup, inspection))),
    ...(await attempt('state', () => setUpState(setup, config))),
    ...(await attempt('cron wrapper', () => setUpWrapper(setup))),
    ...(await attempt('old builds', () => collectOldBuilds(setup, config))),
    ...(options.createLabels ? await attempt('labels', () => createLabels(setup, config)) : []),
  ]
  const exitCode = steps.some(({ status }) => status === 'fail') ? 1 : 0
  return { dryRun: options.dryRun, exitCode, steps }
}

function inspectBuild({ build, host, dryRun }: Setup): SetupSteps {
  const info = readBuildInfo(build.root)
  if (info === null) return [done('build', `version ${build.version} in ${build.root}`)]
  const { digest, version, bytes } = info
  const detail = `version ${version}, ${digest}, ${(bytes / 1e6).toFixed(1)} MB`
  if (host === null || launchedBuild(host) === digest) return [done('build', detail)]
  if (dryRun) return [done('build', `${detail}; would become the one that ${host.launcher} starts`)]
  return [done('build', `${detail}; the launcher starts another one`, 'Run: hermes caduceus setup')]
}

function setUpBridge({ bridge, host, dryRun }: Setup, inspection: ConfigInspection): SetupSteps {
  if (bridge === null) return []
  const command: readonly string[] =
    inspection.kind === 'valid' ? inspection.loaded.config.workerCommand : []
  // Without Hermes a bridge is made only at the path that the configuration names as its worker.
  if (host === null && !command.includes(bridge.bridge)) return []
  const { detail, next } = describeBridge(bridge, seedBridge(bridge, dryRun), dryRun)
  return [done('bridge', detail, next)]
}

/** State files of another version are refused here, before the first tick meets them. */
function setUpState({ dryRun }: Setup, config: Config | null): SetupSteps {
  if (config === null) return []
  const { stateDir } = config
  const isThere = fileStatus(stateDir) !== null
  const store = openJsonStore({ clock: systemClock, archiveCorrupt: false }, stateDir)
  if (isThere && store.exists()) {
    store.readMeta()
    store.readQueue()
  }
  if (!dryRun) prepareDirectories(stateDir)
  return [done('state', `${stateDir}${dryRun && !isThere ? ', would be made' : ''}`)]
}

/** Rewrites a wrapper whose paths have changed. Only `cron-install` makes a first one. */
function setUpWrapper({ host, dryRun }: Setup): SetupSteps {
  if (host === null || dryRun) return []
  const { path, state, written } = refreshWrapper(wrapperPartsOf(host, process.execPath))
  if (state === 'absent') {
    return [
      done('cron wrapper', 'not installed', 'Have ticks started: hermes caduceus cron-install'),
    ]
  }
  return [done('cron wrapper', `${path}, ${written ? 'made anew' : 'as it should be'}`)]
}

async function collectOldBuilds(
  { build, host, dryRun }: Setup,
  config: Config | null,
): Promise<SetupSteps> {
  if (host === null || config === null) return []
  const removed = await collectUnused(host, build, config.stateDir, dryRun)
  if (removed.length === 0) return []
  return [done('old builds', `${dryRun ? 'would remove' : 'removed'} ${removed.join(', ')}`)]
}
