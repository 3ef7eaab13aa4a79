import { constants } from 'node:os'
import { call, systemFault } from './native.ts'

// flock(2): the same numbers on every architecture we run on.
const LOCK = { shared: 1, exclusive: 2 } as const
const LOCK_NB = 4

/**
 * Takes a lock on an open file description without waiting: true = held now (also when it already
 * was, through this same description), false = another description holds it.
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
