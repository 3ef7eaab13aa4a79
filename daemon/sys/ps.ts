import { spawnSync } from 'node:child_process'
import { fault } from '../core/fault.ts'
import type { ProcessEntry, ProcessSource } from './process-entry.ts'

// Facts about processes from ps(1) and sysctl(8): macOS, second tier. Slower, and coarser: start times
// are whole seconds, process groups stand for sessions, environments and folders are not shown at all.

const TIMEOUT_MS = 5000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024
const ENV = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C' }
const COLUMNS = 'pid=,ppid=,pgid=,stat=,lstart='

export const psSource: ProcessSource = {
  entry: (pid) => parseLines(output('ps', ['-o', COLUMNS, '-p', String(pid)]))[0] ?? null,
  list: () => parseLines(output('ps', ['-A', '-o', COLUMNS])),
  children: () => null,
  bootId: () => {
    const text = output('sysctl', ['-n', 'kern.boottime'])
    return /sec = (\d+)/.exec(text)?.[1] ?? text.trim()
  },
  environment: () => null,
  workingDirectory: () => null,
  openFiles: () => [],
  commandLine: () => '',
}

function parseLines(text: string): readonly ProcessEntry[] {
  return text.split('\n').flatMap((line) => {
    const [, pid, ppid, group, state, started] =
      /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line) ?? []
    const startTicks = Date.parse(started ?? '') / 1000
    if (state === undefined || Number.isNaN(startTicks)) return []
    const isZombie = state.startsWith('Z')
    return [{ pid: Number(pid), ppid: Number(ppid), session: Number(group), startTicks, isZombie }]
  })
}

/** ps exits 1 when no process matches, so the code says nothing; only a failed start is a fault. */
function output(program: string, args: readonly string[]): string {
  const { stdout, error } = spawnSync(program, args, {
    env: ENV,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  if (error !== undefined)
    throw fault('sys/spawn-failed', { program, reason: error.message }, error)
  return stdout
}
