/** A process as the system lists it. */
export type ProcessEntry = Readonly<{
  pid: number
  ppid: number
  /** Session id, the pid of its leader; on macOS the process group stands for it. */
  session: number
  /** When it started: clock ticks since boot (Linux), seconds since the epoch (macOS). */
  startTicks: number
  /** Ended, but not yet collected by its parent. */
  isZombie: boolean
}>

/**
 * What the system knows about processes. Null or empty = no such process, this user may not ask, or the answer
 * cannot be had for it; the platform may lack a fact altogether (macOS has the first four only).
 */
export type ProcessSource = Readonly<{
  entry(pid: number): ProcessEntry | null
  list(): readonly ProcessEntry[]
  /** null = search the list instead. */
  children(pid: number): number[] | null
  bootId(): string
  environment(pid: number): Readonly<Record<string, string>> | null
  /** Where it works; of a folder too deep to be named, the deepest one above it that has a name. */
  workingDirectory(pid: number): string | null
  /** Paths of its open files as the system names them. */
  openFiles(pid: number): readonly string[]
  /** What it was started with, its parts separated by spaces. */
  commandLine(pid: number): string
}>
