import {
  type ConfigInspection,
  inspectConfig,
  type LoadedConfig,
  loadConfig,
} from '../config/load-config.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'

const FILES = { fileStatus, readFileBounded, realPath }

/** The configuration in force for this process. Faults: config/*. */
export function loadProgramConfig(environment: Readonly<Record<string, string>>): LoadedConfig {
  return loadConfig(FILES, environment)
}

/** The same, with what is wrong about it as a value. */
export function inspectProgramConfig(
  environment: Readonly<Record<string, string>>,
): ConfigInspection {
  return inspectConfig(FILES, environment)
}
