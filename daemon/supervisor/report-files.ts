import { isFault } from '../core/fault.ts'
import {
  type ExitReport,
  formatRunFile,
  isCancelRequest,
  RUN_FILES,
  type Started,
} from '../core/supervision-files.ts'
import { readFileBounded, writeFileAtomic } from '../sys/files.ts'

const MAX_CONTROL_BYTES = 4096

/** Durable when it returns. Faults: sys/io. */
export function writeStarted(directory: string, started: Started): void {
  writeFileAtomic(`${directory}/${RUN_FILES.started}`, formatRunFile('started', started))
}

/** Durable when it returns. Faults: sys/io. */
export function writeExit(directory: string, report: ExitReport): void {
  writeFileAtomic(`${directory}/${RUN_FILES.exit}`, formatRunFile('exit', report))
}

/** Whether the control file asks for the end. */
export function isCancelled(directory: string): boolean {
  try {
    const bytes = readFileBounded(`${directory}/${RUN_FILES.control}`, MAX_CONTROL_BYTES)
    return bytes !== null && isCancelRequest(bytes.toString('utf8'))
  } catch (thrown) {
    // A control file that cannot be read asks for nothing; a paid worker is not ended for it.
    if (isFault(thrown)) return false
    throw thrown
  }
}
