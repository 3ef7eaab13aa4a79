import type { ExitReport } from './supervision-files.ts'

/** What it takes to find a supervised run again: the same for its runner and for an adopter. */
export type SupervisedRun = Readonly<{
  runId: string
  /** `runs/<run>/`; exists. */
  directory: string
  treePath: string
}>

export type LaunchRequest = SupervisedRun &
  Readonly<{
    /** The worker command; the program is an absolute path, or is searched in the worker's PATH. */
    argv: readonly [string, ...string[]]
    /** The worker's whole environment. It travels over a pipe and stands in no file. */
    environment: Readonly<Record<string, string>>
    resultPath: string
    transcriptPath: string
    /** Output beyond this is dropped behind one marker line. */
    transcriptMaxBytes: number
    /** From the worker's start. */
    timeoutMs: number
    /** How long a worker may linger after a valid result with everything unchanged; 0 = for ever. */
    completionGraceMs: number
    /** How long a worker may be without output and change; 0 = for ever. */
    stallMs: number
  }>

export type LaunchOutcome =
  | Readonly<{ kind: 'launched' }>
  /** A supervisor of this run is alive, or one has started a worker before: watch it instead. */
  | Readonly<{ kind: 'already-launched' }>

/** What became of a run, as far as its files and locks show. */
export type SupervisionEnd =
  | Readonly<{ kind: 'ended'; report: ExitReport }>
  /**
   * The supervisor died without a report; `workerStarted: false` proves that nothing was paid, and
   * `launched: false` that there never was a supervisor.
   */
  | Readonly<{ kind: 'vanished'; launched: boolean; workerStarted: boolean }>
  /** It holds its lock beyond every time it can rightly need (stopped, hung): see `Executor.killSupervisor`. */
  | Readonly<{ kind: 'overdue' }>
  /** The watcher's own signal ended the watching; the run goes on. */
  | Readonly<{ kind: 'unwatched' }>

/** Whether every process of a run is gone. */
export type ReapOutcome =
  | Readonly<{ kind: 'clear'; killed: number }>
  | Readonly<{ kind: 'unkillable'; pids: readonly number[] }>

export type Watching = Readonly<{
  /** Called at the start and then every `LIMITS.heartbeatMs`. */
  onHeartbeat?: () => void
  signal?: AbortSignal
}>

/** Runs workers. Everything it knows of a run stands in the run's folder, so any process may go on. */
export type Executor = {
  /** Starts the supervisor, which starts the worker. Faults: sys/io, sys/spawn-failed. */
  launch(request: LaunchRequest): Promise<LaunchOutcome>
  /** Waits for the end of a launched run; used alike by its runner and an adopter. Faults: sys/io. */
  watch(run: SupervisedRun, watching?: Watching): Promise<SupervisionEnd>
  /** Asks the supervisor to end the run; `watch` returns when it has. Faults: sys/io. */
  cancel(run: SupervisedRun): void
  /** Kills an overdue supervisor (PROTOCOLS, Adoption); false = it still holds its lock. */
  killSupervisor(run: SupervisedRun): Promise<boolean>
  /** After a vanished supervisor: ends its orphans, until nothing holds the tree (PROTOCOLS, Adoption). */
  reap(run: SupervisedRun): Promise<ReapOutcome>
}
