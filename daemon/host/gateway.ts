import { join } from 'node:path'
import { fileStatus, readFileBounded } from '../sys/files.ts'
import { environmentOf, identifyProcess } from '../sys/process-identity.ts'

// What the host's gateway leaves in HERMES_HOME: the heartbeat of its ticker, and which process it is.

const MAX_NOTE_BYTES = 64 * 1024
/** A note is about now; anything else in the file is not a time. */
const OLDEST_SECONDS = 1_500_000_000

export type Gateway = Readonly<{
  /** The ticker's last heartbeat, milliseconds since the epoch; null = there is none. */
  heartbeatAt: number | null
  /** The ticker's last heartbeat without a fault; null = this host does not say. */
  successAt: number | null
  /** The running gateway; null when none is known to run. */
  running: Readonly<{ pid: number; startedAt: number }> | null
  /** What it was started with; null when unknown or not to be seen by this user. Secret. */
  environment: Readonly<Record<string, string>> | null
}>

/** Reads, and asks nothing of the host. Faults: sys/io. */
export function readGateway(hermesHome: string): Gateway {
  const running = runningGateway(join(hermesHome, 'gateway.pid'))
  return {
    heartbeatAt: readHeartbeat(join(hermesHome, 'cron', 'ticker_heartbeat')),
    successAt: readHeartbeat(join(hermesHome, 'cron', 'ticker_last_success')),
    running,
    environment: running === null ? null : environmentOf(running.pid),
  }
}

/** The time in the file, in seconds since the epoch; when it holds none, the time of the file. */
function readHeartbeat(path: string): number | null {
  const status = fileStatus(path)
  if (status === null) return null
  const text =
    status.kind === 'file' ? readFileBounded(path, MAX_NOTE_BYTES)?.toString().trim() : ''
  const seconds = Number(text)
  return seconds > OLDEST_SECONDS ? Math.max(seconds * 1000, status.mtimeMs) : status.mtimeMs
}

/** Written once, when the gateway starts; a note of a dead process counts for nothing. */
function runningGateway(path: string): Gateway['running'] {
  const status = fileStatus(path)
  if (status?.kind !== 'file') return null
  const note = parsePidNote(readFileBounded(path, MAX_NOTE_BYTES)?.toString() ?? '')
  const identity = note === null ? null : identifyProcess(note.pid)
  if (note === null || identity === null) return null
  // Its number may have been given out again since.
  if (note.startTicks !== null && note.startTicks !== identity.startTicks) return null
  return { pid: note.pid, startedAt: status.mtimeMs }
}

export type PidNote = Readonly<{
  pid: number
  /** When that process started, as proc(5) counts; null = the note does not say. */
  startTicks: number | null
}>

/** A bare number, or a JSON object with a `pid` and perhaps a `start_time`; null = neither. */
export function parsePidNote(text: string): PidNote | null {
  let note: unknown
  try {
    note = JSON.parse(text)
  } catch {
    return null
  }
  const fields = typeof note === 'object' && note !== null ? { ...note } : { pid: note }
  const pid: unknown = 'pid' in fields ? fields.pid : null
  const start: unknown = 'start_time' in fields ? fields.start_time : null
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 1) return null
  return { pid, startTicks: typeof start === 'number' ? start : null }
}
