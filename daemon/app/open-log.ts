import { dirname } from 'node:path'
import winston from 'winston'
import Transport from 'winston-transport'
import { describeFault } from '../core/fault.ts'
import { LIMITS } from '../core/limits.ts'
import type { Clock, Log, LogFields } from '../core/ports.ts'
import { redact } from '../core/redaction.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { appendLine, ensureDirectory, fileStatus, renameFile } from '../sys/files.ts'

/** Which process wrote a line. */
export type LogProcess = 'tick' | 'runner' | 'queue'

const LINE = Symbol.for('message')

/** Appends each line with one write, so that processes never mix theirs and a crash loses none. */
class AppendTransport extends Transport {
  readonly path: string

  constructor(path: string) {
    super()
    this.path = path
  }

  override log(line: Readonly<{ [LINE]?: unknown }>, done: () => void): void {
    try {
      appendLine(this.path, String(line[LINE]))
    } catch (failure) {
      // A full disk must not end a run because it cannot be told about; the error stream has it.
      process.stderr.write(`caduceus: ${describeFault(failure)}\n`)
    }
    done()
  }
}

/**
 * The log at `log_path`: JSON lines of a fixed sentence and fields (design §11). Every text in a line is
 * redacted, and the given secrets wherever they stand.
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
    format: winston.format.printf(({ message }) => String(message)),
    transports: [new AppendTransport(path)],
  })
  const write =
    (level: 'info' | 'warn' | 'error') =>
    (event: string, fields: LogFields = {}): void => {
      const head = { at: toTimestamp(clock.now()), level, process: name, pid: process.pid, event }
      const shown = redactDeep(fields, secrets())
      logger.log(level, JSON.stringify({ ...head, ...Object(shown) }))
    }
  return { info: write('info'), warn: write('warn'), error: write('error') }
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
 * Keeps the log from growing for ever: past its limit it becomes `<path>.1`, which is replaced. Only the
 * tick does this, under its lock; other processes open the path anew for every line (design §11).
 */
export function rotateLog(path: string): void {
  const status = fileStatus(path)
  if (status !== null && status.kind === 'file' && status.size > LIMITS.logBytes) {
    renameFile(path, `${path}.1`)
  }
}
