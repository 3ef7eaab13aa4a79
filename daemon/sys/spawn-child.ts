import { constants as fileFlags } from 'node:fs'
import { call, errnoName, has } from './native.ts'

// <spawn.h> of Linux: every signal at its default, none blocked, a session of its own.
const SPAWN_FLAGS = 0x04 | 0x08 | 0x80
/** More than any C library takes for its spawn structures (336 and 80 bytes) or a set of signals (128). */
const STRUCT_BYTES = 512

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
