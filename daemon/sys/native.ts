// The system calls Node does not offer, through koffi. Loaded at the first call: a start that needs
// none of them must not pay for it. Not loadable is a fault; there is no weaker way (design §3).

import { closeSync, constants as fileFlags, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import type * as Koffi from 'koffi'
import { describeThrown, fault } from '../core/fault.ts'
import { platformName } from './environment.ts'
import { ioFault } from './io-fault.ts'

/** What each platform has; null or absent = it lacks the call. The symbols are those of the C library Node runs on. */
const CALLS = {
  linux: {
    flock: 'int flock(int fd, int operation)',
    waitpid: 'int waitpid(int pid, _Out_ int *status, int options)',
    prctl: 'int prctl(int option, ulong a, ulong b, ulong c, ulong d)',
    syscall: 'long syscall(long number, long a, long b, long c, long d)',
    syncfs: 'int syncfs(int fd)',
    sync: null,
    pipe2: 'int pipe2(_Out_ int *fds, int flags)',
    pipe: null,
    fcntl: null,
    poll: 'int poll(void *fds, ulong count, int waitMs)',
    posix_spawn:
      'int posix_spawn(void *pid, str path, void *actions, void *attributes, const char **argv, const char **env)',
    posix_spawn_file_actions_init: 'int posix_spawn_file_actions_init(void *actions)',
    posix_spawn_file_actions_addopen:
      'int posix_spawn_file_actions_addopen(void *actions, int fd, str path, int flags, uint mode)',
    posix_spawn_file_actions_adddup2:
      'int posix_spawn_file_actions_adddup2(void *actions, int fd, int target)',
    posix_spawnattr_init: 'int posix_spawnattr_init(void *attributes)',
    posix_spawnattr_setflags: 'int posix_spawnattr_setflags(void *attributes, short flags)',
    posix_spawnattr_setsigdefault: 'int posix_spawnattr_setsigdefault(void *attributes, void *set)',
  },
  darwin: {
    flock: 'int flock(int fd, int operation)',
    waitpid: 'int waitpid(int pid, _Out_ int *status, int options)',
    prctl: null,
    syscall: null,
    syncfs: null,
    sync: 'void sync()',
    pipe2: null,
    pipe: 'int pipe(_Out_ int *fds)',
    fcntl: 'int fcntl(int fd, int command, ...)',
    poll: 'int poll(void *fds, uint count, int waitMs)',
  },
} as const satisfies Record<string, Record<string, string | null>>

type CallName = keyof (typeof CALLS)['linux']
type NativeCall = (...args: readonly unknown[]) => unknown

// flock(2), waitpid(2), fcntl(2), prctl(2): the same numbers on every architecture we run on.
const LOCK = { shared: 1, exclusive: 2 } as const
const LOCK_NB = 4
const WNOHANG = 1
const F_SETFD = 2
const FD_CLOEXEC = 1
const O_CLOEXEC_LINUX = 0o2000000
const PR_SET_DUMPABLE = 4
const PR_SET_CHILD_SUBREAPER = 36
const SYS_PIDFD_SEND_SIGNAL = 424
const SYS_PIDFD_OPEN = 434
// poll(2): what is waited for, and where it stands in a struct pollfd.
const POLLIN = 1
const POLLFD_BYTES = 8
const POLLFD_EVENTS_OFFSET = 4
// <spawn.h> of Linux: every signal at its default, none blocked, a session of its own.
const SPAWN_FLAGS = 0x04 | 0x08 | 0x80
/** More than any C library takes for its spawn structures (336 and 80 bytes) or a set of signals (128). */
const STRUCT_BYTES = 512

/** How a child ended, as waitpid(2) tells it. */
export type Reaped = Readonly<{ pid: number; exitCode: number | null; signal: number | null }>

/**
 * Takes a lock on an open file description without waiting: true = held now (also when it already
 * was, through this same description), false = somebody else holds it.
 * Faults: sys/io, sys/native-unavailable.
 */
export function flock(fd: number, operation: keyof typeof LOCK): boolean {
  for (;;) {
    const { result, errno } = call('flock', fd, LOCK[operation] | LOCK_NB)
    if (result === 0) return true
    if (errno === constants.errno.EWOULDBLOCK) return false
    if (errno !== constants.errno.EINTR) throw systemFault('Locking', `descriptor ${fd}`, errno)
  }
}

/**
 * Makes this process's memory and environment unreadable to other processes of the same user
 * (prctl PR_SET_DUMPABLE). Does nothing on macOS, which has no such call.
 */
export function setNonDumpable(): void {
  if (!has('prctl')) return
  const { result, errno } = call('prctl', PR_SET_DUMPABLE, 0, 0, 0, 0)
  if (result !== 0) throw systemFault('Protecting', 'this process', errno)
}

/** Makes orphaned descendants children of this process; false where the platform cannot (macOS). */
export function setChildSubreaper(): boolean {
  return has('prctl') && call('prctl', PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0).result === 0
}

/**
 * Collects an ended child without waiting; pid −1 = any. null = it still runs, or is no child of
 * ours. Never for a child Node itself waits for: Node would not see it end (P§4).
 */
export function reap(pid: number): Reaped | null {
  const status = [0]
  const { result } = call('waitpid', pid, status, WNOHANG)
  if (result <= 0) return null
  const word = status[0] ?? 0
  const signal = word & 0x7f
  return signal === 0
    ? { pid: result, exitCode: (word >> 8) & 0xff, signal: null }
    : { pid: result, exitCode: null, signal }
}

/**
 * Waits at most so many milliseconds; true = reading gives bytes or the end at once, false = not yet.
 * Nothing else happens in this process meanwhile. Faults: sys/io, sys/native-unavailable.
 */
export function waitReadable(fd: number, waitMs: number): boolean {
  const waited = Buffer.alloc(POLLFD_BYTES)
  waited.writeInt32LE(fd)
  waited.writeInt16LE(POLLIN, POLLFD_EVENTS_OFFSET)
  const { result, errno } = call('poll', waited, 1, waitMs)
  if (result < 0 && errno !== constants.errno.EINTR)
    throw systemFault('Waiting for', `descriptor ${fd}`, errno)
  return result > 0
}

/** Whether this platform has `spawnChild`. */
export const canSpawnChild = (): boolean => has('posix_spawn')

/**
 * Starts a program in the working folder of this process, as leader of its own session, through posix_spawn(3):
 * what the kernel refuses to run is refused, and not given to a shell as execvp(3), and Node with it, does.
 * The child is ours to collect (`reap`), so its true end is known.
 * @param fds by index of the child's descriptor, from 0; they must be larger than their index. null = /dev/null
 * @returns the pid, or the system's error ('ENOENT')
 */
export function spawnChild(
  argv: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  fds: readonly (number | null)[],
): number | string {
  const actions = Buffer.alloc(STRUCT_BYTES)
  const attributes = Buffer.alloc(STRUCT_BYTES)
  call('posix_spawn_file_actions_init', actions)
  call('posix_spawnattr_init', attributes)
  call('posix_spawnattr_setflags', attributes, SPAWN_FLAGS)
  call('posix_spawnattr_setsigdefault', attributes, Buffer.alloc(STRUCT_BYTES, 0xff))
  fds.forEach((fd, index) =>
    fd === null
      ? call('posix_spawn_file_actions_addopen', actions, index, '/dev/null', fileFlags.O_RDONLY, 0)
      : call('posix_spawn_file_actions_adddup2', actions, fd, index),
  )
  const pid = Buffer.alloc(4)
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const strings = [
    [...argv, null],
    [...pairs, null],
  ]
  const { result } = call('posix_spawn', pid, argv[0], actions, attributes, ...strings)
  return result === 0 ? pid.readInt32LE() : errnoName(result)
}

/** A descriptor that means this one process for ever; null = no such process, or no such call here. */
export function openPidfd(pid: number): number | null {
  if (!has('syscall')) return null
  const { result } = call('syscall', SYS_PIDFD_OPEN, pid, 0, 0, 0)
  return result < 0 ? null : result
}

/** Signals the process a pidfd means; false = it has ended or may not be signalled. */
export function signalPidfd(fd: number, signal: NodeJS.Signals): boolean {
  const number = constants.signals[signal]
  return has('syscall') && call('syscall', SYS_PIDFD_SEND_SIGNAL, fd, number, 0, 0).result === 0
}

/** A pipe whose ends no child inherits unless they are given to it; the caller closes both. Faults: sys/io. */
export function createPipe(): Readonly<{ readFd: number; writeFd: number }> {
  const fds: number[] = [-1, -1]
  const { result, errno } = has('pipe2') ? call('pipe2', fds, O_CLOEXEC_LINUX) : call('pipe', fds)
  const [readFd, writeFd] = fds
  if (result !== 0 || readFd === undefined || writeFd === undefined) {
    throw systemFault('Creating', 'a pipe', errno)
  }
  // Without pipe2 the mark comes a moment later; nothing is started in between, on this one thread.
  if (has('fcntl')) for (const fd of fds) call('fcntl', fd, F_SETFD, 'int', FD_CLOEXEC)
  return { readFd, writeFd }
}

/** Writes the whole file system that holds `path` to its device, and waits for it. Faults: sys/io. */
export function syncFilesystemOf(path: string): void {
  if (!has('syncfs')) {
    call('sync')
    return
  }
  const fd = openForSync(path)
  try {
    const { result, errno } = call('syncfs', fd)
    if (result !== 0) throw systemFault('Syncing', path, errno)
  } finally {
    closeSync(fd)
  }
}

function openForSync(path: string): number {
  try {
    return openSync(path, fileFlags.O_RDONLY | fileFlags.O_NONBLOCK)
  } catch (error) {
    throw ioFault('Syncing', path, error)
  }
}

function systemFault(operation: string, path: string, errno: number): Error {
  return ioFault(operation, path, errnoName(errno))
}

function errnoName(errno: number): string {
  const names = Object.entries(constants.errno)
  return names.find(([, number]) => number === errno)?.[0] ?? `system error ${errno}`
}

function declarations(): Partial<Record<CallName, string | null>> {
  const platform = platformName()
  if (platform === 'linux' || platform === 'darwin') return CALLS[platform]
  throw fault('sys/unsupported-platform', { platform })
}

function has(name: CallName): boolean {
  return (declarations()[name] ?? null) !== null
}

function call(name: CallName, ...args: readonly unknown[]): { result: number; errno: number } {
  const { koffi, bind } = library()
  const result = bind(name)(...args)
  return { result: typeof result === 'number' ? result : 0, errno: koffi.errno() }
}

/** The loaded library is a resource of the whole process, so it is kept once here. */
const library = once(() => {
  const koffi = loadKoffi()
  // null = the symbols of the running program, so glibc, musl and macOS need no library name.
  const handle = koffi.load(null)
  const bound = new Map<CallName, NativeCall>()
  const bind = (name: CallName): NativeCall => {
    const declaration = declarations()[name] ?? null
    if (declaration === null) throw fault('sys/native-unavailable', { reason: `no ${name} here` })
    const known: NativeCall = bound.get(name) ?? declare(handle, declaration)
    bound.set(name, known)
    return known
  }
  return { koffi, bind }
})

function declare(handle: Koffi.LibraryHandle, declaration: string): NativeCall {
  try {
    return handle.func(declaration)
  } catch (error) {
    throw fault('sys/native-unavailable', { reason: describeThrown(error) }, error)
  }
}

/** The package that holds the code of one platform is koffi itself; koffi's own way to it takes twice the time. */
function loadKoffi(): typeof Koffi {
  // createRequire, not import: the callers are synchronous, and a bundler leaves it alone.
  const require = createRequire(import.meta.url)
  try {
    const loaded: unknown = require(`@koromix/koffi-${platformName()}-${process.arch}`)
    if (isKoffi(loaded)) return loaded
  } catch {
    // Not where we can see it, as with some package managers, or for another C library; koffi knows more places.
  }
  try {
    const loaded: unknown = require('koffi')
    if (isKoffi(loaded)) return loaded
  } catch (error) {
    const reason = describeThrown(error).replace(/ Require stack.*/s, '')
    throw fault('sys/native-unavailable', { reason }, error)
  }
  throw fault('sys/native-unavailable', { reason: 'koffi has an unknown shape' })
}

function isKoffi(loaded: unknown): loaded is typeof Koffi {
  return typeof loaded === 'object' && loaded !== null && 'load' in loaded && 'errno' in loaded
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
