import { dirname, join } from 'node:path'
import { type ConfigInspection, inspectConfig } from '../config/load-config.ts'
import type { ConfigFiles } from '../config/read-yaml.ts'
import { isFaultOf } from '../core/fault.ts'
import { firstKeys, firstSection } from '../host/config-section.ts'
import { type PlannedFile, planFile, writePlanned } from '../host/planned-file.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import type { Setup } from './open-setup.ts'
import { done, failed, type SetupStep, type SetupSteps } from './setup-report.ts'

const FILES: ConfigFiles = { fileStatus, readFileBounded, realPath }

/** Finds the configuration as every command does. Only where there is none, a first one is written. */
export function setUpConfiguration(
  setup: Setup,
): Readonly<{ steps: SetupSteps; inspection: ConfigInspection }> {
  const { environment, dryRun } = setup
  const before = inspectConfig(FILES, environment)
  const target = before.kind === 'invalid' ? writeTarget(setup, before) : null
  if (target === null) return { steps: [describeConfiguration(before)], inspection: before }
  const isShared = setup.host !== null
  const lines = isShared ? firstSection() : firstKeys(setup.bridge?.bridge ?? null)
  try {
    const planned = planFile(target, lines)
    if (!dryRun) writePlanned(planned)
    const inspection = inspectConfig(dryRun ? overlaid(planned) : FILES, environment)
    const what = isShared ? 'a section "caduceus:"' : 'a first configuration'
    const detail = `${dryRun ? 'would write' : 'wrote'} ${what} into ${target}`
    const problems = inspection.kind === 'valid' ? [] : [describeConfiguration(inspection)]
    return { steps: [done('configuration', detail), ...problems], inspection }
  } catch (thrown) {
    return { steps: [failed('configuration', thrown, lines)], inspection: before }
  }
}

/** The file to write a configuration into; null when the fault is another one than its absence. */
function writeTarget(
  { environment, host, bridge }: Setup,
  { fault: found }: Extract<ConfigInspection, { kind: 'invalid' }>,
): string | null {
  if (environment['CADUCEUS_CONFIG'] !== undefined || bridge === null) return null
  const target = join(host?.hermesHome ?? dirname(bridge.bridge), 'config.yaml')
  if (found.code === 'config/not-found') return target
  return isFaultOf(found, 'config/no-section') && found.details.path === target ? target : null
}

function describeConfiguration(inspection: ConfigInspection): SetupStep {
  if (inspection.kind === 'valid') {
    const { path, section } = inspection.loaded.source
    const location = section === null ? path : `${path} (section ${section})`
    return done('configuration', `${location}, left as it is`)
  }
  return failed('configuration', inspection.fault)
}

/** The file system as it would be after the planned write; a dry run reads the configuration from it. */
function overlaid(planned: PlannedFile): ConfigFiles {
  const isPlanned = (path: string): boolean => path === planned.path
  return {
    ...FILES,
    realPath: (path) => (isPlanned(path) ? path : realPath(path)),
    readFileBounded: (path, maxBytes) =>
      isPlanned(path) ? Buffer.from(planned.text) : readFileBounded(path, maxBytes),
  }
}
