export type WorkerRequest = Readonly<{
  /** The program is a path; it is not searched for. */
  argv: readonly [string, ...string[]]
  cwd: string
  /** Exactly this, nothing inherited. */
  env: Readonly<Record<string, string>>
  /** Write end of a pipe; becomes both output streams, so that their bytes keep their order. */
  outputFd: number
  /** Becomes descriptor 3, kept open on purpose (P§1). */
  lockFd: number
}>

export type WorkerExit = Readonly<{ exitCode: number | null; signal: string | null }>

/** A running worker: the leader of its own session and process group. */
export type WorkerProcess = Readonly<{
  pid: number
  /** Resolves when the process itself has ended, whoever still holds its pipe (C35). */
  exited: Promise<WorkerExit>
  /** Looks whether it has ended, where only we can see that; `exited` tells. */
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
