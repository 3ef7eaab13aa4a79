import { existsSync, readFileSync } from 'node:fs'
import type { Journal } from '../../daemon/core/journal.ts'
import { parseRunFile } from '../../daemon/core/supervisor-files.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import type { ProgramRig } from './program-rig.ts'
import { waitUntil } from './wait-until.ts'

// The processes behind the newest run of a rig, as its own files name them.

export type RunProcesses = Readonly<{ runner: number; supervisor: number; worker: number }>

/** Waits until all three are on record. */
export async function processesOfRun(rig: ProgramRig): Promise<RunProcesses> {
  return waitUntil('runner, supervisor and worker are on record', () => {
    const runner = newestRun(rig).runner?.pid
    const started = startedOf(rig)
    const worker = started?.worker?.pid
    return (
      runner !== undefined &&
      started !== null &&
      worker !== undefined && { runner, supervisor: started.supervisor.pid, worker }
    )
  })
}

export function newestRun(rig: ProgramRig): Journal {
  const newest = rig.journals().toSorted((a, b) => (a.runId < b.runId ? 1 : -1))[0]
  if (newest === undefined) throw new Error('there was no run')
  return newest
}

function startedOf(rig: ProgramRig) {
  const path = rig.layout.run(newestRun(rig).runId).started
  return existsSync(path) ? parseRunFile('started', readFileSync(path, 'utf8')) : null
}

/** Kills processes and waits until they are gone. */
export async function killNow(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await waitUntil('the killed are gone', () => pids.every((pid) => identifyProcess(pid) === null))
}
