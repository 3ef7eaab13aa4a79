import { dirname } from 'node:path'
import winston from 'winston'
import Transport from 'winston-transport'
import { describeFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock, Log, LogFields } from '../core/ports.ts'
import { redact } from '../core/redaction.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { appendLine, ensureDirectory, fileStatus, renameFile } from '../sys/files.ts'

type Format = winston.Logform.Format

/** Which process wrote a line. */
export type LogProcess = 'tick' | 'runner' | 'queue'

/**
 * The log at `log_path`: JSON lines of a fixed sentence and fields. Every text in a line is redacted, and the given
 * secrets wherever they stand.
 * @param secrets asked at each line, because a token is found only when it is needed
 * Faults: sys/io when its folder cannot be made.
 */
export function openLog(
  path: string,
  name: LogProcess,
  clock: Clock,
  secrets: () => readonly string[],
): Log {
  ensureDirectory(dirname(path))
  const logger = winston.createLogger({
    level: 'info',
    format: winston.format.combine(redacting(secrets), jsonLine(name, clock)),
    transports: [new AppendTransport(path)],
  })
  const write =
    (level: 'info' | 'warn' | 'error') =>
    (event: string, fields: LogFields = {}): void => {
      logger.log({ level, message: event, fields })
    }
  return { info: write('info'), warn: write('warn'), error: write('error') }
}

const redacting = (secrets: () => readonly string[]): Format =>
  winston.format((entry) => ({ ...entry, fields: redactDeep(entry['fields'], secrets()) }))()

const jsonLine = (name: LogProcess, clock: Clock): Format =>
  winston.format.printf(({ level, message, fields }) => {
    const at = toTimestamp(clock.now())
    const head = { at, level, process: name, pid: process.pid, event: message }
    return JSON.stringify({ ...head, ...Object(fields) })
  })

/** Where winston puts what its formats made of an entry. */
const LINE = Symbol.for('message')

/**
 * Appends each line with one write, so that several processes never mix theirs and a crash loses none. Winston's own
 * transport for files writes through a stream and renames files by itself, which suits one process alone.
 */
class AppendTransport extends Transport {
  readonly path: string

  constructor(path: string) {
    super()
    this.path = path
  }

  override log(entry: Readonly<{ [LINE]?: unknown }>, done: () => void): void {
    try {
      appendLine(this.path, String(entry[LINE]))
    } catch (failure) {
      // A full disk must not end a run that only cannot be reported; the error stream has it.
      process.stderr.write(`caduceus: ${describeFault(failure)}\n`)
    }
    done()
  }
}

function redactDeep(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return redact(value, secrets)
  if (Array.isArray(value)) return value.map((item) => redactDeep(item, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, redactDeep(inner, secrets)]),
  )
}

/**
 * Bounds the log: past its limit it becomes `<path>.1`, which is replaced. Only the tick does this, under its lock;
 * other processes open the path again for every line.
 */
export function rotateLog(path: string): void {
  const status = fileStatus(path)
  if (status !== null && status.kind === 'file' && status.size > LIMITS.logBytes) {
    renameFile(path, `${path}.1`)
  }
}
