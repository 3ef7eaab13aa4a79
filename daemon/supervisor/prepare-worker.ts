import { fault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import {
  type Launch,
  parseEnvironment,
  parseRunFile,
  RUN_FILES,
  SUPERVISOR_FDS,
} from '../core/supervision-files.ts'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { inheritLock, type KernelLock, tryLock } from '../sys/kernel-lock.ts'
import { setNonDumpable } from '../sys/protect-process.ts'
import { readDescriptor } from '../sys/read-descriptor.ts'
import { setChildSubreaper } from '../sys/reap.ts'
import { startTranscript, type Transcript } from './transcript.ts'

/** execve takes at most 6 MiB of arguments and environment together on Linux; JSON may double it. */
const MAX_ENVIRONMENT_BYTES = 16 * 1024 * 1024
/** The runner writes at once after it spawned us; longer means that it was stopped. */
const ENVIRONMENT_WAIT_MS = 30_000

export type PreparedWorker = Readonly<{
  launch: Launch
  environment: Readonly<Record<string, string>>
  transcript: Transcript
  treeLock: KernelLock
  isSubreaper: boolean
}>

/**
 * Everything that can fail before something is paid for. Any fault here ends the supervisor without a
 * `started.json`, so a watcher knows that no worker ran (I5).
 */
export function prepareWorker(directory: string): PreparedWorker {
  const lockPath = `${directory}/${RUN_FILES.supervisorLock}`
  if (inheritLock(SUPERVISOR_FDS.lock, lockPath) === null) throw refused('its lock was not given')
  // The worker's environment is in our memory, so neither that nor we may be traced.
  setNonDumpable()
  const isSubreaper = setChildSubreaper()
  const launch = readLaunch(directory)
  const environment = readEnvironment()
  // Never a second worker for one run, whatever went wrong with the first.
  if (fileStatus(`${directory}/${RUN_FILES.started}`) !== null)
    throw refused('it was started before')
  const treeLock = tryLock(`${directory}/${RUN_FILES.treeLock}`)
  if (treeLock === null) throw refused('a process of it is still alive')
  const transcript = startTranscript(launch.transcriptPath, launch.transcriptMaxBytes)
  return { launch, environment, transcript, treeLock, isSubreaper }
}

function readLaunch(directory: string): Launch {
  const bytes = readFileBounded(`${directory}/${RUN_FILES.launch}`, LIMITS.supervisorFileBytes)
  const launch = bytes === null ? null : parseRunFile('launch', bytes.toString('utf8'))
  if (launch === null) throw refused('launch.json is missing or not valid')
  return launch
}

function readEnvironment(): Readonly<Record<string, string>> {
  const fd = SUPERVISOR_FDS.environment
  const text = readDescriptor(fd, MAX_ENVIRONMENT_BYTES, ENVIRONMENT_WAIT_MS)
  const environment = text === null ? null : parseEnvironment(text)
  if (environment === null) throw refused('the environment did not arrive')
  return environment
}

function refused(reason: string): Error {
  return fault('worker/supervisor-failed', { reason: `the run was not started, ${reason}` })
}
