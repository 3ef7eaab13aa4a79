import { readFileSync } from 'node:fs'

/** The words a process was started with; none when it has ended, even while we look. */
export function commandLineOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  } catch {
    return []
  }
}
