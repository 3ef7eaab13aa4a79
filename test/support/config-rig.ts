import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type ConfigInspection, inspectConfig } from '../../daemon/config/load-config.ts'
import type { Problem } from '../../daemon/config/problem.ts'
import type { ConfigFiles } from '../../daemon/config/read-yaml.ts'
import { fileStatus, readFileBounded } from '../../daemon/sys/files.ts'
import { realPath } from '../../daemon/sys/paths.ts'

export const CONFIG_FILES: ConfigFiles = { readFileBounded, fileStatus, realPath }

/** A home folder of its own, with what a test writes into it. */
export type ConfigRig = Readonly<{
  home: string
  path(...names: string[]): string
  /** Writes a file below the home folder and answers its path. */
  write(name: string, content: string | Uint8Array, mode?: number): string
  env(more?: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  /** Inspects a configuration given as a value, in the standalone place. */
  inspect(document: unknown, env?: Readonly<Record<string, string>>): ConfigInspection
  remove(): void
}>

export function makeConfigRig(): ConfigRig {
  const home = mkdtempSync(join(tmpdir(), 'config home '))
  const path = (...names: string[]): string => join(home, ...names)
  const write = (name: string, content: string | Uint8Array, mode = 0o600): string => {
    const target = path(name)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, content)
    chmodSync(target, mode)
    return target
  }
  const env = (more = {}): Readonly<Record<string, string>> => ({ HOME: home, ...more })
  return {
    home,
    path,
    write,
    env,
    inspect: (document, more = {}) => {
      // JSON is YAML.
      write('.config/caduceus/config.yaml', JSON.stringify(document))
      return inspectConfig(CONFIG_FILES, env(more))
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}

/** The problems of an inspection that is expected to have some. */
export function problemsOf(inspection: ConfigInspection): readonly Problem[] {
  return inspection.kind === 'invalid' ? inspection.problems : []
}

export function warningsOf(inspection: ConfigInspection): readonly Problem[] {
  return inspection.kind === 'invalid' ? inspection.warnings : inspection.loaded.warnings
}
