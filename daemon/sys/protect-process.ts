import { call, has, systemFault } from './native.ts'

/** Of prctl(2). */
const PR_SET_DUMPABLE = 4

/**
 * Makes this process's memory and environment unreadable to other processes of the same user
 * (prctl PR_SET_DUMPABLE). Does nothing on macOS, which has no such call.
 */
export function setNonDumpable(): void {
  if (!has('prctl')) return
  const { result, errno } = call('prctl', PR_SET_DUMPABLE, 0, 0, 0, 0)
  if (result !== 0) throw systemFault('Protecting', 'this process', errno)
}
