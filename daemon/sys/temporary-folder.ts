import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A fresh folder of our own (0700) where the system keeps temporary files. */
export function makeTemporaryFolder(prefix: string): string {
  return mkdtempSync(join(tmpdir(), prefix))
}
