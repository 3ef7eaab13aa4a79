import { isAbsolute, join } from 'node:path'
import { isFault } from '../core/fault.ts'
import type { Clock } from '../core/ports.ts'
import { platformName } from './environment.ts'
import { fileStatus, isDirectory, readFileBounded } from './files.ts'
import { findProgram } from './find-program.ts'
import { runProcess } from './run-process.ts'

// A service manager that ends a service ends everything in its control group: a restart of the host's
// gateway would end every run that one of its ticks started. So a run is put into a group of its own, a
// systemd scope. The program is started plainly and systemd is asked to take its process over: unlike
// with `systemd-run --scope`, nothing stands between us and the start, no descriptor has to pass
// through another program, and after a refusal the process runs where it would have run anyway.

type Environment = Readonly<Record<string, string>>

/** Where systemd shows itself; tests have other paths. */
export type ScopePaths = Readonly<{
  /** Exists while systemd is the system's manager (sd_booted(3)). */
  booted: string
  /** proc(5). */
  processes: string
  /** Holds a runtime folder for each user who is logged in or lingers. */
  runtime: string
  uid: number
}>

export type ScopeSupport =
  | Readonly<{ kind: 'user' | 'system'; busctl: string; environment: Environment }>
  | Readonly<{ kind: 'none'; reason: string }>

/** Puts processes into scopes of their own. */
export type RunScope = Readonly<{
  /**
   * Moves a process, and with it what it will start, into a new scope. False = it stays where it is.
   * After a failure none is tried again, so that a start is held up once at most. Throws nothing.
   */
  enter(pid: number, name: string): Promise<boolean>
}>

const CALL_MS = 1000
/** The answer comes when the move is queued; it is done a moment later. */
const MOVE_MS = 500
const PROBE_INTERVAL_MS = 5
const GROUP_BYTES = 64 * 1024
/** Where busctl is when PATH is bare. */
const SYSTEM_FOLDERS = '/usr/local/bin:/usr/bin:/bin'

/** Whether runs get a scope here, or why not; one line of reason for `doctor`. Starts nothing. */
export function describeScope(
  environment: Environment,
  paths: ScopePaths = systemScopePaths(),
): ScopeSupport {
  const none = (reason: string): ScopeSupport => ({ kind: 'none', reason })
  if (platformName() !== 'linux') return none('there is no systemd on this system')
  if (!isDirectory(paths.booted)) return none('systemd does not run here')
  const path = [environment['PATH'] ?? '', SYSTEM_FOLDERS].join(':')
  const busctl = findProgram('busctl', { PATH: path })
  if (busctl === null) return none('busctl was not found')
  if (paths.uid === 0) return { kind: 'system', busctl, environment: { PATH: path } }
  const named = environment['XDG_RUNTIME_DIR'] ?? ''
  const runtime = isAbsolute(named) ? named : join(paths.runtime, String(paths.uid))
  if (!isThere(join(runtime, 'bus'))) return none('the user has no service manager of its own')
  const address = environment['DBUS_SESSION_BUS_ADDRESS'] ?? `unix:path=${join(runtime, 'bus')}`
  return {
    kind: 'user',
    busctl,
    environment: { PATH: path, XDG_RUNTIME_DIR: runtime, DBUS_SESSION_BUS_ADDRESS: address },
  }
}

/** What is found at the first call of `enter` holds for all of them. */
export function openRunScope(
  clock: Clock,
  environment: Environment,
  paths: ScopePaths = systemScopePaths(),
): RunScope {
  let support: ScopeSupport | null = null
  return {
    enter: async (pid, name) => {
      support ??= describeScope(environment, paths)
      if (support.kind === 'none') return false
      const unit = `caduceus-${name}-${pid}.scope`
      const isMoved =
        (await askToMove(support, pid, unit)) && (await isInGroup(clock, paths, pid, unit))
      if (!isMoved) support = { kind: 'none', reason: 'systemd did not take a process over' }
      return isMoved
    },
  }
}

/** org.freedesktop.systemd1(5), StartTransientUnit; a scope is a unit for processes that exist already. */
async function askToMove(
  { kind, busctl, environment }: Exclude<ScopeSupport, { kind: 'none' }>,
  pid: number,
  unit: string,
): Promise<boolean> {
  const manager = [
    'org.freedesktop.systemd1',
    '/org/freedesktop/systemd1',
    'org.freedesktop.systemd1.Manager',
  ]
  const properties = [
    ['PIDs', 'au', '1', String(pid)],
    ['Description', 's', 'A run of Caduceus'],
    // Gone with its last process, also after a failure.
    ['CollectMode', 's', 'inactive-or-failed'],
  ]
  const shape = ['StartTransientUnit', 'ssa(sv)a(sa(sv))', unit, 'fail', String(properties.length)]
  try {
    const { code } = await runProcess({
      argv: [busctl, `--${kind}`, 'call', ...manager, ...shape, ...properties.flat(), '0'],
      env: environment,
      timeoutMs: CALL_MS,
    })
    return code === 0
  } catch (error) {
    if (isFault(error)) return false
    throw error
  }
}

async function isInGroup(
  clock: Clock,
  { processes }: ScopePaths,
  pid: number,
  unit: string,
): Promise<boolean> {
  const path = join(processes, String(pid), 'cgroup')
  // Counted in sleeps: a clock that is set meanwhile must not end the wait.
  for (let waitedMs = 0; waitedMs <= MOVE_MS; waitedMs += PROBE_INTERVAL_MS) {
    if (readText(path).includes(`/${unit}`)) return true
    await clock.sleep(PROBE_INTERVAL_MS)
  }
  return false
}

function systemScopePaths(): ScopePaths {
  return {
    booted: '/run/systemd/system',
    processes: '/proc',
    runtime: '/run/user',
    uid: process.geteuid?.() ?? -1,
  }
}

function isThere(path: string): boolean {
  return orNull(() => fileStatus(path)) !== null
}

function readText(path: string): string {
  return orNull(() => readFileBounded(path, GROUP_BYTES))?.toString('utf8') ?? ''
}

function orNull<T>(ask: () => T): T | null {
  try {
    return ask()
  } catch {
    return null
  }
}
