import { constants } from 'node:os'
import { call, has } from './native.ts'

/** The same on every architecture we run on. */
const SYS_PIDFD_SEND_SIGNAL = 424
const SYS_PIDFD_OPEN = 434

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
