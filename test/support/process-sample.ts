import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

export type Sampled = Readonly<{ pid: number; command: string; where: 'argv' | 'environment' }>

/** Processes of this machine whose arguments or environment hold a text (proc(5)). */
export function processesShowing(text: string): readonly Sampled[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`)
    const shown = { argv: command, environment: read(`/proc/${pid}/environ`) }
    return (['argv', 'environment'] as const)
      .filter((where) => shown[where].includes(text))
      .map((where) => ({ pid: Number(pid), command: command.replaceAll('\0', ' ').trim(), where }))
  })
}

/** The words a process was started with; none when it has ended, even while we look. */
export function commandLineOf(pid: number): readonly string[] {
  return read(`/proc/${pid}/cmdline`).split('\0').slice(0, -1)
}

/** Looks again and again until `end`, which returns everything that was ever found. */
export function sampleProcesses(
  text: string,
): Readonly<{ end: () => Promise<readonly Sampled[]>; looks: () => number }> {
  const stop = new AbortController()
  const found: Sampled[] = []
  let looks = 0
  const sampling = (async () => {
    for (; !stop.signal.aborted; looks += 1) {
      found.push(...processesShowing(text))
      await pause(1)
    }
  })()
  return {
    end: async () => {
      stop.abort()
      await sampling
      return found
    },
    looks: () => looks,
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // it has ended meanwhile
  }
}
