// The files through which a supervisor and its watchers speak: one run, one folder (PROTOCOLS, Adoption).
//
//   launch.json   the runner, before it spawns the supervisor: what to run and how long
//   started.json  the supervisor, durable before the worker exists (I5): its absence proves that
//                 nothing was paid. Written once more with the worker's identity; `worker: null` then
//                 means "not known", never "none"
//   exit.json     the supervisor, last of all, after the tree was synced
//   control       the process that cancels; polled by the supervisor
//
// The formats are read by a small hand-written check, because the supervisor starts close to bare node.

import { END_REASONS, type EndReason } from './end-reasons.ts'
import type { RecordedProcess } from './journal.ts'
import type { Timestamp } from './timestamp.ts'

/** Names inside `runs/<run>/`. */
export const RUN_FILES = {
  launch: 'launch.json',
  started: 'started.json',
  exit: 'exit.json',
  control: 'control',
  /** Held by the supervisor for its life; handed over by the runner. */
  supervisorLock: 'sup.lock',
  /** Held by the worker and by every descendant that keeps its descriptor. */
  treeLock: 'tree.lock',
} as const satisfies Record<string, string>

/** Descriptors a supervisor is given. */
export const SUPERVISOR_FDS = {
  lock: 3,
  /** The worker's environment as JSON, so that it never stands in a file or an environment. */
  environment: 4,
} as const satisfies Record<string, number>

/** Format version of the three JSON files. */
const VERSION = 1

type Check<T> = (value: unknown) => value is T
type Shape = Readonly<Record<string, Check<unknown>>>
type Shaped<S extends Shape> = {
  readonly [Name in keyof S]: S[Name] extends Check<infer T> ? T : never
}

const isText: Check<string> = (value) => typeof value === 'string'
const isPath: Check<string> = (value): value is string => isText(value) && value.startsWith('/')
const isFlag: Check<boolean> = (value) => typeof value === 'boolean'
const isCount: Check<number> = (value): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
const isTime: Check<Timestamp> = (value): value is Timestamp =>
  isText(value) && !Number.isNaN(Date.parse(value))
const isReason: Check<EndReason> = (value): value is EndReason =>
  isText(value) && Object.hasOwn(END_REASONS, value)
const isArgv = (value: unknown): value is readonly [string, ...string[]] =>
  Array.isArray(value) && value.length > 0 && value.every(isText)
const isPids = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every(isCount)
const isProcess = (value: unknown): value is RecordedProcess => hasShape(value, PROCESS)
const orNull =
  <T>(check: Check<T>) =>
  (value: unknown): value is T | null =>
    value === null || check(value)

const PROCESS = { pid: isCount, startTicks: isCount, bootId: isText, session: isCount } as const

const LAUNCH = {
  runId: isText,
  argv: isArgv,
  /** The worker's working directory; synced at the end. */
  treePath: isPath,
  resultPath: isPath,
  transcriptPath: isPath,
  transcriptMaxBytes: isCount,
  /** From the worker's start. */
  timeoutMs: isCount,
  /** 0 = a lingering worker is never ended early. */
  completionGraceMs: isCount,
  /** 0 = off. */
  stallMs: isCount,
  launchedAt: isTime,
} as const

const STARTED = {
  supervisor: isProcess,
  worker: orNull(isProcess),
  startedAt: isTime,
  deadlineAt: isTime,
} as const

const EXIT = {
  endedAt: isTime,
  reason: isReason,
  /** Code or text of what went wrong: of a spawn ('ENOENT'), of the transcript, of the supervisor. */
  detail: orNull(isText),
  /** Of the worker; null when a signal ended it or it never ran. */
  exitCode: orNull(isCount),
  signal: orNull(isText),
  /** Size of the transcript file, marker included. */
  transcriptBytes: isCount,
  transcriptTruncated: isFlag,
  /** Processes besides the worker that had to be ended. */
  descendantsKilled: isCount,
  /** Processes that could not be ended; the supervisor keeps its lock and goes on trying. */
  unkillable: isPids,
} as const

export type Launch = Shaped<typeof LAUNCH>
export type Started = Shaped<typeof STARTED>
export type ExitReport = Shaped<typeof EXIT>

const SHAPES = { launch: LAUNCH, started: STARTED, exit: EXIT } as const
type Contents = { launch: Launch; started: Started; exit: ExitReport }
export type RunFileName = keyof Contents

/** The text of one of the three files. */
export function formatRunFile<N extends RunFileName>(name: N, content: Contents[N]): string {
  return `${JSON.stringify({ format: `caduceus-${name}`, version: VERSION, ...content }, null, 2)}\n`
}

/** The content of one of the three files; null when the text is not one of this format and version. */
export function parseRunFile<N extends RunFileName>(name: N, text: string): Contents[N] | null {
  const value = parseJson(text)
  if (!isRecord(value)) return null
  if (value['format'] !== `caduceus-${name}` || value['version'] !== VERSION) return null
  return hasContent(name, value) ? value : null
}

/** The control file that asks for the end of a run. */
export const CANCEL_REQUEST = `${JSON.stringify({ action: 'cancel' })}\n`

/** Whether a control file asks for the end; anything unknown in it counts as no request. */
export function isCancelRequest(text: string): boolean {
  const value = parseJson(text)
  return isRecord(value) && value['action'] === 'cancel'
}

/** A worker's environment from its JSON text; null when it is not an object of strings. */
export function parseEnvironment(text: string): Readonly<Record<string, string>> | null {
  const value = parseJson(text)
  return isTextRecord(value) ? value : null
}

/** Whether a result file claims success; the runner checks it strictly later. */
export function claimsSuccess(text: string): boolean {
  const value = parseJson(text)
  return isRecord(value) && value['status'] === 'success'
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTextRecord(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every(isText)
}

function hasShape(value: unknown, shape: Shape): boolean {
  return isRecord(value) && Object.entries(shape).every(([name, check]) => check(value[name]))
}

function hasContent<N extends RunFileName>(name: N, value: unknown): value is Contents[N] {
  return hasShape(value, SHAPES[name])
}
