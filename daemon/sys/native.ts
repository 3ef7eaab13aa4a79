// The system calls Node does not offer, through koffi. Loaded at the first call: a start that needs
// none of them must not pay for it. Not loadable is a fault; there is no weaker way.

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

/** `sys/io` for a call that failed with this number. */
export function systemFault(operation: string, path: string, errno: number): Error {
  return ioFault(operation, path, errnoName(errno))
}

/** The system's name of an error number ('ENOENT'). */
export function errnoName(errno: number): string {
  const names = Object.entries(constants.errno)
  return names.find(([, number]) => number === errno)?.[0] ?? `system error ${errno}`
}

function declarations(): Partial<Record<CallName, string | null>> {
  const platform = platformName()
  if (platform === 'linux' || platform === 'darwin') return CALLS[platform]
  throw fault('sys/unsupported-platform', { platform })
}

/** Whether this platform has the call. */
export function has(name: CallName): boolean {
  return (declarations()[name] ?? null) !== null
}

/** Calls the C library. Faults: sys/native-unavailable, sys/unsupported-platform. */
export function call(
  name: CallName,
  ...args: readonly unknown[]
): { result: number; errno: number } {
  const { koffi, bind } = library()
  const result = bind(name)(...args)
  return { result: typeof result === 'number' ? result : 0, errno: koffi.errno() }
}

/** The loaded library is a resource of the whole process, so it is retained once here. */
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
  // createRequire, not import: the callers are synchronous, and a bundler does not follow it.
  const require = createRequire(import.meta.url)
  try {
    const loaded: unknown = require(`@koromix/koffi-${platformName()}-${process.arch}`)
    if (isKoffi(loaded)) return loaded
  } catch {
    // Not where we can find it, as with some package managers, or for another C library; koffi knows more places.
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
