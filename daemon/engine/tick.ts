import { addDiagnostics } from '../core/diagnostics.ts'
import { evaluateGate, type Gate } from '../core/gate.ts'
import { repositoryId } from '../core/issue-key.ts'
import { type Meta, type RepositoryState } from '../core/meta.ts'
import { type TickOutcome } from '../core/tick-outcomes.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { cancelIneligible } from './check-eligible.ts'
import { collect } from './collect.ts'
import { type DispatchReport, dispatch } from './dispatch.ts'
import { type IntakeReport, intake } from './intake.ts'
import { isRateLimit, isRejectedToken, recordError } from './outcome-of-fault.ts'
import { type RecoveryReport, recover } from './recover.ts'
import { mustEnd, type TickPorts, type TickProblem } from './tick-ports.ts'
import { watchPulls } from './watch-pulls.ts'
import { type CloneReport, inspectClones, watchedRepositories } from './watched-repositories.ts'

// One tick: gate → recover → clones → cancel → intake → watch → dispatch →
// collect → settle. It looks at what is true now
// and moves it one step; it starts work and leaves. Called under the tick lock (design §5, §6).

export type TickReport = Readonly<{
  outcome: TickOutcome
  /** Runs this tick started or took over; `run --wait` waits for them. */
  runIds: readonly string[]
  problems: readonly TickProblem[]
}>

const NO_DISPATCH: DispatchReport = { started: [], problems: [] }

/** @param forced `run --now`: poll at once, and by both labels */
export async function tick(ports: TickPorts, forced: boolean): Promise<TickReport> {
  const { clock, store, settings, git } = ports
  const startedAt = clock.now()
  const gate = evaluateGate(store.readMeta(), startedAt, settings.pollIntervalMs, forced)

  const recovery = await recover(ports)
  const polls = gate.pollIsDue && !mustEnd(ports)
  const watched = await watchedRepositories(ports, polls)
  const clones = await inspectClones(git, watched.repositories)
  const cancelling = polls ? await cancelIneligible(ports) : []
  const polled = polls ? await poll(ports, clones, startedAt, forced) : null
  const watching = polled === null ? [] : await watchPulls(ports, polled.polls)
  const found = [
    ...recovery.problems,
    ...watched.problems,
    ...clones.problems,
    ...cancelling,
    ...(polled?.problems ?? []),
    ...watching,
  ]
  const usable = new Set(clones.usable.map(repositoryId))
  const mayStart = !isLimited(ports) && !found.some(({ thrown }) => isRejectedToken(thrown))
  const dispatched = mayStart ? await dispatch(ports, usable) : NO_DISPATCH

  const known = watched.problems.length === 0 ? watched.repositories : null
  const collecting =
    polled === null || mustEnd(ports)
      ? []
      : await collect(ports, { watched: known, usable: clones.usable, polls: polled.polls })

  const problems = [...found, ...dispatched.problems, ...collecting]
  const outcome = outcomeOf(ports, gate, polled, watched.problems, [recovery, dispatched])
  await recordTick(ports, { startedAt, outcome, clones, polled, problems })
  return { outcome, runIds: [...recovery.adopted, ...dispatched.started], problems }
}

async function poll(
  ports: TickPorts,
  clones: CloneReport,
  startedAt: number,
  forced: boolean,
): Promise<IntakeReport> {
  // Remembered first: a tick that dies while polling still counts for the cadence.
  await ports.store.changeMeta((meta) => {
    const at = toTimestamp(startedAt)
    return { state: { ...meta, lastTickStarted: at, lastPollStarted: at }, value: undefined }
  })
  return intake(ports, clones.usable, forced)
}

function isLimited({ store, clock, settings }: TickPorts): boolean {
  const gate = evaluateGate(store.readMeta(), clock.now(), settings.pollIntervalMs, true)
  return gate.limitedUntil !== null
}

function outcomeOf(
  ports: TickPorts,
  gate: Gate,
  polled: IntakeReport | null,
  discovery: readonly TickProblem[],
  [recovery, dispatched]: readonly [RecoveryReport, DispatchReport],
): TickOutcome {
  if (ports.signal.aborted) return 'cancelled'
  if (recovery.adopted.length + dispatched.started.length > 0) return 'processed'
  if (isLimited(ports)) return 'rate_limited'
  if (polled === null) return gate.pollIsDue ? 'idle_empty' : 'skipped_cadence'
  const allFailed = polled.polled === 0 && polled.problems.length + discovery.length > 0
  if (allFailed) return 'failed'
  return polled.unchanged ? 'idle304' : 'idle_empty'
}

type TickRecord = Readonly<{
  startedAt: number
  outcome: TickOutcome
  clones: CloneReport
  polled: IntakeReport | null
  problems: readonly TickProblem[]
}>

/** Leaves what people read. A tick that did nothing leaves nothing, so that skips change no record. */
async function recordTick(ports: TickPorts, settlement: TickRecord): Promise<void> {
  const { outcome, polled, problems, startedAt } = settlement
  for (const { where, thrown } of problems) {
    const { code, message } = recordError(thrown, startedAt)
    ports.log.warn('tick met a problem', { where, code, message })
  }
  ports.log.info('tick ended', {
    outcome,
    polled: polled?.polled ?? 0,
    enqueued: polled?.enqueued ?? 0,
  })
  if (outcome === 'skipped_cadence' && problems.length === 0) return

  const finishedAt = ports.clock.now()
  const { status, rate } = ports.lastAnswer()
  await ports.store.changeMeta((meta) => ({
    state: {
      ...meta,
      lastHttpStatus: status ?? meta.lastHttpStatus,
      rateLimit: rate ?? meta.rateLimit,
      lastTickStarted: toTimestamp(startedAt),
      lastTickFinished: toTimestamp(finishedAt),
      lastOutcome: outcome,
      lastError: lastError(problems, finishedAt),
      repositories: repositoryStates(meta, settlement, finishedAt),
      diagnostics: addDiagnostics(meta.diagnostics, polled?.diagnostics ?? []),
    },
    value: undefined,
  }))
}

/** Dated, and gone after a tick without problems (R§12 W15a). A rate limit is shown as such, not as an error. */
function lastError(problems: readonly TickProblem[], now: number): Meta['lastError'] {
  const worst = problems.find(({ thrown }) => !isRateLimit(thrown))
  return worst === undefined ? null : recordError(worst.thrown, now)
}

/** Only watched repositories are remembered, so that nothing grows with history. */
function repositoryStates(
  meta: Meta,
  { clones, polled }: TickRecord,
  now: number,
): Readonly<Record<string, RepositoryState>> {
  const watched = [...clones.usable, ...clones.problems.map(({ repository }) => repository)]
  const unusable = new Map(
    clones.problems.map(({ repository, thrown }) => [repositoryId(repository), thrown]),
  )
  return Object.fromEntries(
    watched.map((repository): [string, RepositoryState] => {
      const id = repositoryId(repository)
      const known = polled?.states[id] ?? meta.repositories[id] ?? { sweptAt: null, problem: null }
      if (!unusable.has(id)) return [id, known]
      return [id, { ...known, problem: recordError(unusable.get(id), now) }]
    }),
  )
}
