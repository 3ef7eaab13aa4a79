import { dirname } from 'node:path'
import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import { ensureDirectory, readFileBounded, writeFileAtomic } from '../sys/files.ts'
import { realPath } from '../sys/paths.ts'
import { removeUnfinished, rewriteFile } from '../sys/replace-file.ts'
import { planSection } from './config-section.ts'

/** A file as it is and as it will be; `before` is null when there is none. */
export type PlannedFile = Readonly<{ path: string; before: Uint8Array | null; text: string }>

/** People link their configuration into place. Faults: setup/section-refused, sys/io. */
export function planFile(path: string, lines: readonly string[]): PlannedFile {
  const real = realPath(path)
  const before = real === null ? null : readFileBounded(real, LIMITS.configurationBytes)
  const plan = planSection(before, lines)
  if (plan.kind === 'write') return { path, before, text: plan.text }
  const reason = plan.kind === 'present' ? 'it has one' : plan.reason
  throw fault('setup/section-refused', { path, reason })
}

/** Owner, group and permissions stay. Faults: sys/io; also when the file was changed since it was read. */
export function writePlanned({ path, before, text }: PlannedFile): void {
  const real = realPath(path)
  removeUnfinished(real ?? path)
  if (real !== null && before !== null) {
    rewriteFile(real, before, Buffer.from(text))
  } else {
    ensureDirectory(dirname(path))
    writeFileAtomic(path, text)
  }
}
