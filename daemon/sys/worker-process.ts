export type WorkerRequest = Readonly<{
  /** The program is a path; it is not searched for. */
  argv: readonly [string, ...string[]]
  cwd: string
  /** Exactly this, nothing inherited. */
  env: Readonly<Record<string, string>>
  /** Write end of a pipe; becomes both output streams, so that their bytes stay in order. */
  outputFd: number
  /** The tree lock; becomes descriptor 3 and stays open on purpose (PROTOCOLS, Locks and hand-over). */
  lockFd: number
}>

export type WorkerExit = Readonly<{ exitCode: number | null; signal: string | null }>

/** A running worker: the leader of its own session and process group. */
export type WorkerProcess = Readonly<{
  pid: number
  /** Resolves when the process itself has ended, even while a descendant holds its pipe. */
  exited: Promise<WorkerExit>
  /** Collects it if it has ended, where Node does not; then `exited` resolves. */
  collect(): void
  /** SIGKILLs its process group at one stroke, as long as it is not collected. */
  killGroup(): void
}>

export type SpawnOutcome =
  | Readonly<{ kind: 'spawned'; worker: WorkerProcess }>
  /** `cause` is the system's code ('ENOENT', 'EACCES', 'E2BIG') where that says enough, else a text. */
  | Readonly<{ kind: 'failed'; cause: string }>

/** Why what the kernel refuses to run is no worker. */
export const NOT_EXECUTABLE = 'it is neither a program of this machine nor a script with a #! line'
