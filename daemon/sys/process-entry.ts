// What the system tells about a process, whatever the platform.

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

/** Null or an empty list = no such process, or this user may not look. */
export type ProcessSource = Readonly<{
  entry(pid: number): ProcessEntry | null
  list(): readonly ProcessEntry[]
  /** null = the platform has no direct way. */
  children(pid: number): number[] | null
  bootId(): string
  environment(pid: number): Readonly<Record<string, string>> | null
  workingDirectory(pid: number): string | null
}>
