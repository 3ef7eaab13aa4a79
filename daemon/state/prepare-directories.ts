import { fault } from '../core/fault.ts'
import { ensureDirectory, fileStatus } from '../sys/files.ts'
import { layoutOf } from './layout.ts'

/**
 * Makes the state directory and its sub-directories, 0700; what is there stays as it is.
 * Faults: state/directory-refused when one of them is a link, no directory, or another user's; sys/io.
 */
export function prepareDirectories(stateDir: string): void {
  const layout = layoutOf(stateDir)
  for (const path of [layout.stateDir, ...Object.values(layout.directories)]) {
    const present = fileStatus(path)
    if (present !== null && present.kind !== 'directory') {
      const reason = present.kind === 'symlink' ? 'it is a symbolic link' : 'it is not a directory'
      throw fault('state/directory-refused', { path, reason })
    }
    ensureDirectory(path)
    const owner = fileStatus(path)?.uid
    if (owner !== process.geteuid?.()) {
      const reason = `it belongs to the user with id ${owner}`
      throw fault('state/directory-refused', { path, reason })
    }
  }
}
