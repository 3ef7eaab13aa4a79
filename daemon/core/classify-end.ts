import type { SupervisionEnd } from './executor.ts'
import type { FaultDetails } from './fault.ts'
import type { FaultCode } from './fault-catalogue.ts'
import type { EndReason, ExitReport } from './supervision-files.ts'

/** What the end of a worker means for its run, before its result is looked at (design §6). */
export type EndClass =
  | KnownEnd
  /** Processes may be left: what the end means counts once there are none any more (P§1, P§4). */
  | Readonly<{ kind: 'unreaped'; onceReaped: KnownEnd }>
  /** The supervisor has to be killed first (P§1). */
  | Readonly<{ kind: 'overdue' }>
  | Readonly<{ kind: 'unwatched' }>

export type KnownEnd =
  /** The strictly read result decides between success and failure. */
  | Readonly<{ kind: 'read-result' }>
  /** We were not there: after a sweep, a valid success result counts; anything else is the fault. */
  | (Readonly<{ kind: 'unknown-exit' }> & Failure)
  | (Readonly<{ kind: 'failed' }> & Failure)
  | Readonly<{ kind: 'cancelled' }>
  /** No worker ever ran, nothing was paid. */
  | Readonly<{ kind: 'not-started' }>

/** The fault to make of it; its class in the catalogue decides about the attempt. */
type Failure = Readonly<{ code: FaultCode; details: FaultDetails }>

/** What the messages name. */
export type EndFacts = Readonly<{
  program: string
  transcriptPath: string
  timeoutMs: number
  stallMs: number
}>

/** Signals a process brings on itself; every other one came from elsewhere and costs no attempt. */
const OWN_SIGNALS: readonly string[] = [
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGPIPE',
  'SIGSEGV',
  'SIGSYS',
  'SIGTRAP',
  'SIGXCPU',
  'SIGXFSZ',
]

const SPAWN_FAULTS: Readonly<Record<string, FaultCode>> = {
  ENOENT: 'worker/command-missing',
  EACCES: 'worker/command-not-executable',
}

type EndClassOf = (report: ExitReport, facts: EndFacts) => KnownEnd

const failed = (code: FaultCode, details: FaultDetails): KnownEnd => ({
  kind: 'failed',
  code,
  details,
})

const unknownExit = (reason: string): KnownEnd => ({
  kind: 'unknown-exit',
  code: 'worker/interrupted',
  details: { reason },
})

const VERDICTS = {
  exited: classOfExit,
  'completion-grace': () => ({ kind: 'read-result' }),
  cancelled: () => ({ kind: 'cancelled' }),
  deadline: (_, facts) =>
    failed('worker/timed-out', {
      seconds: facts.timeoutMs / 1000,
      transcript: facts.transcriptPath,
    }),
  stalled: (_, facts) =>
    failed('worker/stalled', { seconds: facts.stallMs / 1000, transcript: facts.transcriptPath }),
  signal: () => failed('worker/interrupted', { reason: 'the supervisor was asked to end' }),
  'spawn-failed': (report, facts) =>
    failed(SPAWN_FAULTS[report.detail ?? ''] ?? 'sys/spawn-failed', {
      program: facts.program,
      reason: report.detail,
    }),
  'transcript-failed': (report, facts) =>
    failed('worker/transcript-failed', {
      transcript: facts.transcriptPath,
      reason: report.detail,
    }),
  'supervisor-failed': (report) => failed('worker/supervisor-failed', { reason: report.detail }),
} as const satisfies Record<EndReason, EndClassOf>

/** Pure: the verdict on an end. Processes left over outrank everything: the tree may still change. */
export function classifyEnd(end: SupervisionEnd, facts: EndFacts): EndClass {
  if (end.kind === 'overdue' || end.kind === 'unwatched') return { kind: end.kind }
  if (end.kind === 'vanished') return { kind: 'unreaped', onceReaped: classOfVanished(end) }
  const endClass = classOfReport(end.report, facts)
  return end.report.unkillable.length === 0 ? endClass : { kind: 'unreaped', onceReaped: endClass }
}

function classOfVanished({ launched, workerStarted }: Vanished): KnownEnd {
  if (workerStarted) return unknownExit('its supervisor vanished')
  if (launched) return { kind: 'not-started' }
  return failed('worker/interrupted', { reason: 'before its worker was launched' })
}

type Vanished = Extract<SupervisionEnd, { kind: 'vanished' }>

function classOfReport(report: ExitReport, facts: EndFacts): KnownEnd {
  const endClass: EndClassOf = VERDICTS[report.reason]
  return endClass(report, facts)
}

/** Success needs exit 0 and a valid result; a signal from elsewhere is an interruption (design §6). */
function classOfExit(report: ExitReport, facts: EndFacts): KnownEnd {
  if (report.exitCode === 0) return { kind: 'read-result' }
  if (report.signal !== null && !OWN_SIGNALS.includes(report.signal)) {
    return failed('worker/interrupted', { reason: `the worker received ${report.signal}` })
  }
  if (report.signal === null && report.exitCode === null)
    return unknownExit('its exit was not seen')
  const ending = report.signal ?? `exit code ${report.exitCode}`
  return failed('worker/exited', { ending, transcript: facts.transcriptPath })
}
