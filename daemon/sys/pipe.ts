import { constants } from 'node:os'
import { call, has, systemFault } from './native.ts'

// fcntl(2), pipe2(2): the same numbers on every architecture we run on.
const F_SETFD = 2
const FD_CLOEXEC = 1
const O_CLOEXEC_LINUX = 0o2000000
// poll(2): what is waited for, and where it stands in a struct pollfd.
const POLLIN = 1
const POLLFD_BYTES = 8
const POLLFD_EVENTS_OFFSET = 4

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
