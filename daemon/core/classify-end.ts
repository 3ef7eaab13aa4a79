import type { EndReason } from './end-reasons.ts'
import type { SupervisionEnd } from './executor.ts'
import { type Fault, fault } from './fault.ts'
import type { ExitReport } from './supervision-files.ts'

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

/** What it means for the run; the class of the fault decides about the attempt. */
type Failure = Readonly<{ fault: Fault }>

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

/** Why a worker could not be started, by the code of the system's error. */
function spawnFault(program: string, reason: string): Fault {
  if (reason === 'ENOENT') return fault('worker/command-missing', { program })
  if (reason === 'EACCES') return fault('worker/command-not-executable', { program })
  return fault('sys/spawn-failed', { program, reason })
}

type EndClassOf = (report: ExitReport, facts: EndFacts) => KnownEnd

const failed = (found: Fault): KnownEnd => ({ kind: 'failed', fault: found })

const interrupted = (reason: string): Fault => fault('worker/interrupted', { reason })

const unknownExit = (reason: string): KnownEnd => ({
  kind: 'unknown-exit',
  fault: interrupted(reason),
})

const detailOf = ({ detail }: ExitReport): string => detail ?? 'it gave no reason'

const END_CLASSES = {
  exited: classOfExit,
  'completion-grace': () => ({ kind: 'read-result' }),
  cancelled: () => ({ kind: 'cancelled' }),
  deadline: (_, { timeoutMs, transcriptPath: transcript }) =>
    failed(fault('worker/timed-out', { seconds: timeoutMs / 1000, transcript })),
  stalled: (_, { stallMs, transcriptPath: transcript }) =>
    failed(fault('worker/stalled', { seconds: stallMs / 1000, transcript })),
  signal: () => failed(interrupted('the supervisor was asked to end')),
  'spawn-failed': (report, { program }) => failed(spawnFault(program, detailOf(report))),
  'transcript-failed': (report, { transcriptPath: transcript }) =>
    failed(fault('worker/transcript-failed', { transcript, reason: detailOf(report) })),
  'supervisor-failed': (report) =>
    failed(fault('worker/supervisor-failed', { reason: detailOf(report) })),
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
  return failed(interrupted('before its worker was launched'))
}

type Vanished = Extract<SupervisionEnd, { kind: 'vanished' }>

function classOfReport(report: ExitReport, facts: EndFacts): KnownEnd {
  const endClass: EndClassOf = END_CLASSES[report.reason]
  return endClass(report, facts)
}

/** Success needs exit 0 and a valid result; a signal from elsewhere is an interruption (design §6). */
function classOfExit(report: ExitReport, facts: EndFacts): KnownEnd {
  if (report.exitCode === 0) return { kind: 'read-result' }
  if (report.signal !== null && !OWN_SIGNALS.includes(report.signal)) {
    return failed(interrupted(`the worker received ${report.signal}`))
  }
  if (report.signal === null && report.exitCode === null)
    return unknownExit('its exit was not seen')
  const ending = report.signal ?? `exit code ${report.exitCode}`
  return failed(fault('worker/exited', { ending, transcript: facts.transcriptPath }))
}
