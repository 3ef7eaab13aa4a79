import type { SupervisionEnd } from './executor.ts'
import type { FaultDetails } from './fault.ts'
import type { FaultCode } from './fault-catalogue.ts'
import type { EndReason, ExitReport } from './supervisor-files.ts'

/** What the end of a worker means for its run, before its result is looked at (design §6). */
export type EndVerdict =
  /** The strictly read result decides between success and failure. */
  | Readonly<{ kind: 'read-result' }>
  /** We were not there: after a sweep, a valid success result counts; anything else is the fault. */
  | (Readonly<{ kind: 'unknown-exit' }> & Failure)
  | (Readonly<{ kind: 'failed' }> & Failure)
  | Readonly<{ kind: 'cancelled' }>
  /** No worker ever ran, nothing was paid. */
  | Readonly<{ kind: 'not-started' }>
  /** The supervisor has to be killed first (P§1). */
  | Readonly<{ kind: 'overdue' }>
  | Readonly<{ kind: 'unwatched' }>

/** The fault to make of it; its class in the catalogue decides about the attempt. */
type Failure = Readonly<{ code: FaultCode; details: FaultDetails }>

/** What the messages name. */
export type EndFacts = Readonly<{
  runId: string
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

type Verdict = (report: ExitReport, facts: EndFacts) => EndVerdict

const failed = (code: FaultCode, details: FaultDetails): EndVerdict => ({
  kind: 'failed',
  code,
  details,
})

const unknownExit = (reason: string): EndVerdict => ({
  kind: 'unknown-exit',
  code: 'worker/interrupted',
  details: { reason },
})

const VERDICTS = {
  exited: verdictOfExit,
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
} as const satisfies Record<EndReason, Verdict>

/** Pure: the verdict on an end. Processes left over outrank everything: the tree may still change. */
export function classifyEnd(end: SupervisionEnd, facts: EndFacts): EndVerdict {
  if (end.kind === 'ended') return verdictOfReport(end.report, facts)
  if (end.kind !== 'vanished') return { kind: end.kind }
  if (end.workerStarted) return unknownExit('its supervisor vanished')
  if (end.launched) return { kind: 'not-started' }
  return failed('worker/interrupted', { reason: 'before its worker was launched' })
}

function verdictOfReport(report: ExitReport, facts: EndFacts): EndVerdict {
  if (report.unkillable.length > 0) return failed('sys/unkillable', { run: facts.runId })
  const verdict: Verdict = VERDICTS[report.reason]
  return verdict(report, facts)
}

/** Success needs exit 0 and a valid result; a signal from elsewhere is an interruption (design §6). */
function verdictOfExit(report: ExitReport, facts: EndFacts): EndVerdict {
  if (report.exitCode === 0) return { kind: 'read-result' }
  if (report.signal !== null && !OWN_SIGNALS.includes(report.signal)) {
    return failed('worker/interrupted', { reason: `the worker received ${report.signal}` })
  }
  if (report.signal === null && report.exitCode === null)
    return unknownExit('its exit was not seen')
  const ending = report.signal ?? `exit code ${report.exitCode}`
  return failed('worker/exited', { ending, transcript: facts.transcriptPath })
}
