import { spawnSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { fault, isFault } from '../core/fault.ts'
import { platformName } from './environment.ts'
import { listDirectory, readFileBounded } from './files.ts'
import { errorCode, ioFault } from './io-fault.ts'

// Where facts about processes come from: one row per platform.

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

// Facts about processes from proc(5).

/** Arguments and environment together cannot be larger than this on Linux (a quarter of 8 MiB, rounded up). */
const MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
const MAX_STAT_BYTES = 4096
const MAX_CHILDREN_BYTES = 4 * 1024 * 1024

/** Gone, going, or not ours to look at; anything else is a fault and must not pass for "no process". */
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'EACCES', 'EPERM'])

export const procSource: ProcessSource = {
  entry(pid) {
    const text = read(`/proc/${pid}/stat`, MAX_STAT_BYTES)
    return text === null ? null : parseStat(text)
  },

  list() {
    return listDirectory('/proc').flatMap((name) => {
      const entry = /^\d+$/.test(name) ? procSource.entry(Number(name)) : null
      return entry === null ? [] : [entry]
    })
  },

  children(pid) {
    const threads = absentAsNull(() => listDirectory(`/proc/${pid}/task`)) ?? []
    const lists = threads.map((thread) =>
      read(`/proc/${pid}/task/${thread}/children`, MAX_CHILDREN_BYTES),
    )
    // All absent: the kernel was built without these files, or the process has ended.
    if (lists.every((list) => list === null)) return null
    return lists.flatMap((list) => list?.match(/\d+/g) ?? []).map(Number)
  },

  bootId() {
    const id = read('/proc/sys/kernel/random/boot_id', MAX_STAT_BYTES)
    if (id === null) throw ioFault('Reading', '/proc/sys/kernel/random/boot_id', 'absent')
    return id.trim()
  },

  environment(pid) {
    const text = read(`/proc/${pid}/environ`, MAX_ENVIRONMENT_BYTES)
    if (text === null) return null
    const variables = text.split('\0').filter((variable) => variable.includes('='))
    return Object.fromEntries(variables.map(splitVariable))
  },

  workingDirectory(pid) {
    return absentAsNull(() => readlinkSync(`/proc/${pid}/cwd`))
  },
}

/** proc(5): the name is in parentheses and may itself hold spaces and parentheses, so count from the last one. */
function parseStat(text: string): ProcessEntry | null {
  const pid = Number.parseInt(text, 10)
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, ppid, , session] = fields
  const threads = Number(fields[17])
  const startTicks = Number(fields[19])
  if (!Number.isSafeInteger(pid) || !Number.isSafeInteger(startTicks)) return null
  // The first thread may end before the others; then the process is shown as a zombie but still acts.
  const isZombie = (state === 'Z' || state === 'X') && threads <= 1
  return { pid, ppid: Number(ppid), session: Number(session), startTicks, isZombie }
}

function splitVariable(variable: string): [string, string] {
  const end = variable.indexOf('=')
  return [variable.slice(0, end), variable.slice(end + 1)]
}

function read(path: string, maxBytes: number): string | null {
  return absentAsNull(() => readFileBounded(path, maxBytes))?.toString() ?? null
}

function absentAsNull<T>(look: () => T): T | null {
  try {
    return look()
  } catch (error) {
    const code = isFault(error) ? error.details['code'] : errorCode(error)
    if (typeof code === 'string' && NOT_THERE.has(code)) return null
    throw error
  }
}

// Facts about processes from ps(1) and sysctl(8): macOS, second tier. Slower, and coarser: start times
// are whole seconds, sessions are told only as process groups, environments and folders not at all.

const TIMEOUT_MS = 5000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024
const ENV = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C' }
const COLUMNS = 'pid=,ppid=,pgid=,stat=,lstart='

export const psSource: ProcessSource = {
  entry: (pid) => parseLines(output('ps', ['-o', COLUMNS, '-p', String(pid)]))[0] ?? null,
  list: () => parseLines(output('ps', ['-A', '-o', COLUMNS])),
  children: () => null,
  bootId: () => {
    const told = output('sysctl', ['-n', 'kern.boottime'])
    return /sec = (\d+)/.exec(told)?.[1] ?? told.trim()
  },
  environment: () => null,
  workingDirectory: () => null,
}

function parseLines(text: string): readonly ProcessEntry[] {
  return text.split('\n').flatMap((line) => {
    const [, pid, ppid, group, state, started] =
      /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line) ?? []
    const startTicks = Date.parse(started ?? '') / 1000
    if (state === undefined || Number.isNaN(startTicks)) return []
    const isZombie = state.startsWith('Z')
    return [{ pid: Number(pid), ppid: Number(ppid), session: Number(group), startTicks, isZombie }]
  })
}

/** ps exits 1 when no process matches, so the code says nothing; only a failed start is a fault. */
function output(program: string, args: readonly string[]): string {
  const { stdout, error } = spawnSync(program, args, {
    env: ENV,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  if (error !== undefined)
    throw fault('sys/spawn-failed', { program, reason: error.message }, error)
  return stdout
}

const SOURCES = {
  linux: procSource,
  darwin: psSource,
} as const satisfies Record<string, ProcessSource>

/** The source for this platform. Faults: sys/unsupported-platform. */
export function processSource(): ProcessSource {
  const platform = platformName()
  if (platform === 'linux' || platform === 'darwin') return SOURCES[platform]
  throw fault('sys/unsupported-platform', { platform })
}
