import { call, has } from './native.ts'

// waitpid(2), prctl(2): the same numbers on every architecture we run on.
const WNOHANG = 1
const PR_SET_CHILD_SUBREAPER = 36

/** How a child ended, as waitpid(2) reports it. */
export type Reaped = Readonly<{ pid: number; exitCode: number | null; signal: number | null }>

/** Makes orphaned descendants children of this process; false where the platform cannot (macOS). */
export function setChildSubreaper(): boolean {
  return has('prctl') && call('prctl', PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0).result === 0
}

/**
 * Collects an ended child without waiting; pid −1 = any. null = it still runs, or is no child of
 * ours. Never for a child Node itself waits for: Node would not see it end
 * (PROTOCOLS, Ending processes).
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
