import { LIMITS } from '../core/limits.ts'
import { fileStatus, renameFile } from '../sys/files.ts'

/**
 * Keeps the log from growing for ever: past its limit it becomes `<path>.1`, which is replaced. Only the
 * tick does this, under its lock; other processes open the path anew for every line (design §11).
 */
export function rotateLog(path: string): void {
  const status = fileStatus(path)
  if (status !== null && status.kind === 'file' && status.size > LIMITS.logBytes) {
    renameFile(path, `${path}.1`)
  }
}
