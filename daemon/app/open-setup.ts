import { join } from 'node:path'
import { type HermesHost, requireHost } from '../host/hermes-cron.ts'
import { homeDirectory, environment as readEnvironment } from '../sys/environment.ts'
import { type BridgePaths, bridgePaths } from './bridge-state.ts'
import type { Build } from './build.ts'

export type SetupOptions = Readonly<{ dryRun: boolean; createLabels: boolean }>

/** What each step of `caduceus setup` works with. */
export type Setup = Readonly<{
  build: Build
  environment: Readonly<Record<string, string>>
  /** Null = Caduceus is installed without Hermes. */
  host: HermesHost | null
  /** Null = no home folder is known that a bridge could be kept in. */
  bridge: BridgePaths | null
  /** Steps report what they would do, and change nothing. */
  dryRun: boolean
}>

/** Faults: config/environment when HERMES_HOME is no absolute path. */
export function openSetup(build: Build, dryRun: boolean): Setup {
  const environment = readEnvironment()
  const host = environment['HERMES_HOME'] === undefined ? null : requireHost(environment)
  const home = homeDirectory(environment)
  const own = home === null ? null : join(home, '.config', 'caduceus')
  const folder = host === null ? own : join(host.hermesHome, 'caduceus')
  const bridge = folder === null ? null : bridgePaths(build.root, folder)
  return { build, environment, host, bridge, dryRun }
}
