// Where facts about processes come from: one row per platform.

import { fault } from '../core/fault.ts'
import { platformName } from './environment.ts'
import type { ProcessSource } from './process-entry.ts'
import { procSource } from './process-source-proc.ts'
import { psSource } from './process-source-ps.ts'

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
