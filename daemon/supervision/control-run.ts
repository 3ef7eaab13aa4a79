import type { SupervisedRun } from '../core/executor.ts'
import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import {
  CANCEL_REQUEST,
  type ExitReport,
  formatRunFile,
  type Launch,
  parseRunFile,
  RUN_FILES,
  type Started,
} from '../core/supervision-files.ts'
import { readFileBounded, writeFileAtomic } from '../sys/files.ts'

/** The files of a run as its runner or an adopter sees them; null = not written (yet). Faults: sys/io. */
export function readLaunch(run: SupervisedRun): Launch | null {
  return parse(run, 'launch', (text) => parseRunFile('launch', text))
}

export function readStarted(run: SupervisedRun): Started | null {
  return parse(run, 'started', (text) => parseRunFile('started', text))
}

export function readExit(run: SupervisedRun): ExitReport | null {
  return parse(run, 'exit', (text) => parseRunFile('exit', text))
}

/** Durable when it returns. Faults: sys/io. */
export function writeLaunch(run: SupervisedRun, launch: Launch): void {
  writeFileAtomic(pathOf(run, 'launch'), formatRunFile('launch', launch))
}

/** Asks the supervisor for the end; it reads that file several times a second. Faults: sys/io. */
export function writeCancel(run: SupervisedRun): void {
  requestCancel(pathOf(run, 'control'))
}

/** The same for a process that does not own the run and knows only where its files lie. Faults: sys/io. */
export function requestCancel(controlPath: string): void {
  writeFileAtomic(controlPath, CANCEL_REQUEST)
}

export function pathOf(run: SupervisedRun, name: keyof typeof RUN_FILES): string {
  return `${run.directory}/${RUN_FILES[name]}`
}

/** These files are written whole by our own programs: another content must not pass for "absent". */
function parse<T>(
  run: SupervisedRun,
  name: 'launch' | 'started' | 'exit',
  read: (text: string) => T | null,
): T | null {
  const path = pathOf(run, name)
  const bytes = readFileBounded(path, LIMITS.supervisorFileBytes)
  if (bytes === null) return null
  const content = read(bytes.toString('utf8'))
  if (content !== null) return content
  throw fault('sys/io', { operation: 'Reading', path, reason: 'its format is not known' })
}
