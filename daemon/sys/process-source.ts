import { fault } from '../core/fault.ts'
import { platformName } from './environment.ts'
import { procSource } from './proc.ts'
import type { ProcessSource } from './process-entry.ts'
import { psSource } from './ps.ts'

/** Where facts about processes come from: one row per platform. */
const SOURCES = {
  linux: procSource,
  darwin: psSource,
} as const satisfies Record<string, ProcessSource>

/** The source for this platform. Faults: sys/unsupported-platform. */
export function processSource(): ProcessSource {
  const platform = platformName()
  if (platform === 'linux' || platform === 'darwin') return SOURCES[platform]
  throw fault('sys/unsupported-platform', { platform })
}
