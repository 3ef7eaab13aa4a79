import { writeFileSync } from 'node:fs'
import type { Executor, SupervisionEnd } from '../../daemon/core/executor.ts'
import type { ExitReport } from '../../daemon/core/supervision-files.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import type { ModelTime } from './model-github.ts'
import type { ModelProcess } from './model-process.ts'

// Workers that need no process: each behaves in one of the ways there are, and ends at its time.

/** How workers behave. */
export const BEHAVIOURS = [
  'change',
  'no-change',
  'failure',
  'garbage',
  'exit',
  'segv',
  'killed',
  'timeout',
  'lingering',
  'vanish',
  'vanish-done',
  'vanish-early',
  'spawn-failed',
  'overdue',
] as const
export type Behaviour = (typeof BEHAVIOURS)[number]

/** How long a worker may take, milliseconds. */
export const WORKER_MS = 3_600_000
const LONGEST_MS = 600_000

type Worker = {
  readonly behaviour: Behaviour
  /** A worker was started, so it was paid for. */
  readonly isPaid: boolean
  /** GitHub's clock stands for the machine's own here: it is never set. */
  readonly endsAt: number
  isKilled: boolean
}

type WorkerParts = Readonly<{
  time: ModelTime
  /** In [0, 1). */
  random: () => number
  /** Of the n-th worker, from 0. */
  behaviourAt: (count: number) => Behaviour
  onPaid: (runId: string) => void
  note: (line: string) => void
}>

export function makeModelWorkers({ time, random, behaviourAt, onPaid, note }: WorkerParts) {
  const workers = new Map<string, Worker>()
  const cancelledAt = new Map<string, number>()
  let launches = 0

  const start = (runId: string, resultPath: string): void => {
    const behaviour = behaviourAt(launches)
    launches += 1
    const isPaid = behaviour !== 'vanish-early' && behaviour !== 'spawn-failed'
    const longMs = behaviour === 'timeout' ? WORKER_MS : Math.round(random() * LONGEST_MS)
    workers.set(runId, { behaviour, isPaid, endsAt: time.server + longMs, isKilled: false })
    note(`    worker of ${runId}: ${behaviour}, ${longMs} ms`)
    if (isPaid) onPaid(runId)
    const result = RESULTS[behaviour]
    if (result !== undefined) writeFileSync(resultPath, result)
  }
  /** null = it is still at work. */
  const endOf = (runId: string): SupervisionEnd | null => {
    const worker = workers.get(runId)
    if (worker === undefined) return { kind: 'vanished', launched: false, workerStarted: false }
    const { behaviour, endsAt, isKilled } = worker
    const isHeard = HEARS_CANCEL.has(behaviour) && (cancelledAt.get(runId) ?? Infinity) < endsAt
    if (isHeard) return exited({ reason: 'cancelled', exitCode: null })
    if (endsAt > time.server) return null
    return ENDS[isKilled ? 'vanish' : behaviour]()
  }
  const cancel = (runId: string): void => {
    if (!cancelledAt.has(runId)) cancelledAt.set(runId, time.server)
  }
  return {
    launches: (): number => launches,
    has: (runId: string): boolean => workers.has(runId),
    behaviourOf: (runId: string): Behaviour | null => workers.get(runId)?.behaviour ?? null,
    cancel,
    /** The executor of one process, which waits for its turn while a worker is at work. */
    executorFor: (process: ModelProcess): Executor => ({
      launch: async ({ runId, resultPath }) => {
        const known = workers.get(runId)
        const isSupervised = known !== undefined && known.endsAt > time.server
        if (known?.isPaid || isSupervised) return { kind: 'already-launched' }
        start(runId, resultPath)
        return { kind: 'launched' }
      },
      watch: async ({ runId }, watching) => {
        watching?.onHeartbeat?.()
        for (;;) {
          if (watching?.signal?.aborted) return { kind: 'unwatched' }
          const end = endOf(runId)
          if (end !== null) return end
          await process.turn()
        }
      },
      cancel: ({ runId }) => cancel(runId),
      killSupervisor: async ({ runId }) => {
        const worker = workers.get(runId)
        if (worker !== undefined) worker.isKilled = true
        return true
      },
      reap: async () => ({ kind: 'clear', killed: 1 }),
    }),
  }
}

const exited = (change: Partial<ExitReport> = {}): SupervisionEnd => ({
  kind: 'ended',
  report: {
    endedAt: toTimestamp(0),
    reason: 'exited',
    detail: null,
    exitCode: 0,
    signal: null,
    transcriptBytes: 0,
    transcriptTruncated: false,
    descendantsKilled: 0,
    unkillable: [],
    ...change,
  },
})
const vanished = (workerStarted: boolean): SupervisionEnd => ({
  kind: 'vanished',
  launched: true,
  workerStarted,
})

const ENDS: Readonly<Record<Behaviour, () => SupervisionEnd>> = {
  change: () => exited(),
  'no-change': () => exited(),
  failure: () => exited(),
  garbage: () => exited(),
  exit: () => exited({ exitCode: 3 }),
  segv: () => exited({ exitCode: null, signal: 'SIGSEGV' }),
  killed: () => exited({ exitCode: null, signal: 'SIGKILL' }),
  timeout: () => exited({ reason: 'deadline', exitCode: null }),
  lingering: () => exited({ reason: 'completion-grace', exitCode: null, signal: 'SIGKILL' }),
  vanish: () => vanished(true),
  'vanish-done': () => vanished(true),
  'vanish-early': () => vanished(false),
  'spawn-failed': () => exited({ reason: 'spawn-failed', detail: 'ENOENT', exitCode: null }),
  overdue: () => ({ kind: 'overdue' }),
}

const RESULT = { status: 'success', summary: 'Done.', commit_message: 'x', pull_request_title: 'x' }
const RESULTS: Readonly<Partial<Record<Behaviour, string>>> = {
  change: JSON.stringify(RESULT),
  'no-change': JSON.stringify(RESULT),
  lingering: JSON.stringify(RESULT),
  'vanish-done': JSON.stringify(RESULT),
  exit: JSON.stringify(RESULT),
  failure: JSON.stringify({ status: 'failure', summary: 'no way' }),
  garbage: '{',
}

/** Those with a supervisor that looks for the wish to cancel and can still say what it did. */
const HEARS_CANCEL: ReadonlySet<Behaviour> = new Set(
  BEHAVIOURS.filter(
    (one) => !['vanish', 'vanish-done', 'vanish-early', 'spawn-failed', 'overdue'].includes(one),
  ),
)
