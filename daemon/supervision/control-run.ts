import type { ReapOutcome, SupervisedRun } from '../core/executor.ts'
import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock } from '../core/ports.ts'
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
import {
  ownAncestry,
  processesHolding,
  processesOfSession,
  processesWithVariable,
  processesWorkingIn,
} from '../sys/find-processes.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { identifyProcess, ownIdentity, type ProcessIdentity } from '../sys/process-identity.ts'
import { killIdentity } from '../sys/terminate.ts'

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

/** Asks the supervisor for the end; it looks several times a second. Faults: sys/io. */
export function writeCancel(run: SupervisedRun): void {
  requestCancel(pathOf(run, 'control'))
}

/** The same for whoever is not the run's owner and knows only where its files lie. Faults: sys/io. */
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

const PAUSE_MS = 20

/**
 * Ends what a vanished supervisor has left (P§1, adopt): the worker's session, holders of the tree
 * lock, processes with this run's CADUCEUS_RUN_ID or a working directory in its tree – until two looks
 * in a row find nobody and the lock is free. Spares the caller and the processes above it, such as the
 * shell of an operator who stands in the tree. As long as a supervisor holds its lock, it is the one who
 * ends them, and nothing is done here. Faults: sys/io.
 */
export async function reapRun(clock: Clock, run: SupervisedRun): Promise<ReapOutcome> {
  if (isLocked(pathOf(run, 'supervisorLock')))
    return { kind: 'unkillable', pids: readExit(run)?.unkillable ?? [] }
  const worker = readStarted(run)?.worker ?? null
  const killed = new Set<number>()
  const until = clock.now() + LIMITS.killBoundMs
  for (let emptyProbes = 0; ; ) {
    const left = remainsOf(run, worker)
    for (const [pid, process] of left) {
      killed.add(pid)
      killIdentity(process, 'SIGKILL')
    }
    const isClear = left.size === 0 && !isLocked(pathOf(run, 'treeLock'))
    emptyProbes = isClear ? emptyProbes + 1 : 0
    if (emptyProbes === 2) return { kind: 'clear', killed: killed.size }
    if (clock.now() >= until) return { kind: 'unkillable', pids: [...left.keys()] }
    await clock.sleep(PAUSE_MS)
  }
}

function remainsOf(
  run: SupervisedRun,
  worker: ProcessIdentity | null,
): ReadonlyMap<number, ProcessIdentity> {
  const found = [
    ...(isSessionOf(worker) ? processesOfSession(worker.session) : []),
    ...processesHolding(pathOf(run, 'treeLock')),
    ...processesWithVariable('CADUCEUS_RUN_ID', run.runId),
    ...processesWorkingIn(run.treePath),
  ]
  const spared = ownAncestry()
  return new Map(
    found.filter(({ pid }) => !spared.has(pid)).map((process) => [process.pid, process]),
  )
}

/** A recorded session is swept unless it is of another boot or its number belongs to somebody else now. */
function isSessionOf(worker: ProcessIdentity | null): worker is ProcessIdentity {
  if (worker === null) return false
  const self = ownIdentity()
  if (worker.bootId !== self.bootId || worker.session === self.session) return false
  const leader = identifyProcess(worker.session)
  return leader === null || leader.startTicks === worker.startTicks
}
