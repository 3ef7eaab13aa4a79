import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Executor, LaunchRequest, SupervisionEnd } from '../../daemon/core/executor.ts'
import { makeRunId } from '../../daemon/core/run-id.ts'
import { type ExitReport, parseRunFile, type Started } from '../../daemon/core/supervision-files.ts'
import type { SupervisorProgram } from '../../daemon/supervision/start-supervisor.ts'
import { trustedHost } from '../../daemon/supervision/trusted-host.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { removePath } from '../../daemon/sys/files.ts'
import { processesHolding, processesWithVariable } from '../../daemon/sys/find-processes.ts'
import { bundleFixture } from './processes.ts'

const ROGUE = join(import.meta.dirname, '../fixtures/bin/rogue')

/** A worker that does one of the bad things of that program. */
export const rogue = (...how: readonly [string, ...string[]]): readonly [string, ...string[]] => [
  ROGUE,
  ...how,
]

/** A shell script as a worker. */
export const shell = (script: string): readonly [string, ...string[]] => ['/bin/sh', '-c', script]

/** One run in a folder of its own, and what can be seen of it from outside. */
export type Rig = Readonly<{
  executor: Executor
  request: LaunchRequest
  root: string
  /** Launches and waits for the report. */
  run: (change?: Partial<LaunchRequest>) => Promise<ExitReport>
  started: () => Started | null
  transcript: () => string
  /** A path inside the worker's tree. */
  inTree: (name: string) => string
  /** A text the worker wrote there, or null. */
  read: (name: string) => string | null
  /** Pids of processes that belong to the run. */
  processes: () => readonly number[]
  close: () => Promise<void>
}>

/** Bundles the supervisor once for a test file. */
export function buildSupervisor(): Readonly<{
  path: string
  remove: () => void
  /** Below the folder for temporary files, or another one. */
  open: (change?: Partial<SupervisorProgram>, folder?: string) => Rig
}> {
  const bundle = bundleFixture('../../daemon/supervise')
  return { ...bundle, open: (change, folder) => openRig(bundle.path, change, folder) }
}

function openRig(
  supervisorPath: string,
  change: Partial<SupervisorProgram> = {},
  folder = tmpdir(),
): Rig {
  const root = mkdtempSync(join(folder, 'supervised-run-'))
  const directory = join(root, 'run')
  const treePath = join(root, 'tree')
  mkdirSync(directory)
  mkdirSync(treePath)
  const runId = makeRunId(Date.now(), crypto.getRandomValues(new Uint8Array(10)))
  const executor = trustedHost({
    clock: systemClock,
    argv: [process.execPath, supervisorPath],
    environment: { PATH: process.env['PATH'] ?? '' },
    logPath: join(root, 'supervisor.log'),
    ...change,
  })
  const request: LaunchRequest = {
    runId,
    directory,
    treePath,
    argv: shell('true'),
    environment: { PATH: process.env['PATH'] ?? '', CADUCEUS_RUN_ID: runId },
    resultPath: join(treePath, 'worker-result.json'),
    transcriptPath: join(root, 'run.log'),
    transcriptMaxBytes: 100_000,
    timeoutMs: 30_000,
    completionGraceMs: 0,
    stallMs: 0,
  }
  const inTree = (name: string): string => join(treePath, name)
  const read = (name: string): string | null =>
    existsSync(inTree(name)) ? readFileSync(inTree(name), 'utf8') : null
  const processes = (): readonly number[] =>
    [
      ...processesWithVariable('CADUCEUS_RUN_ID', runId),
      ...processesHolding(join(directory, 'tree.lock')),
      ...processesHolding(join(directory, 'sup.lock')),
    ].map(({ pid }) => pid)

  return {
    executor,
    request,
    root,
    run: async (requestChange = {}) => {
      const wanted = { ...request, ...requestChange }
      const launched = await executor.launch(wanted)
      if (launched.kind !== 'launched') throw new Error('it was launched before')
      return reportOf(await executor.watch(wanted), root)
    },
    started: () => {
      const path = join(directory, 'started.json')
      return existsSync(path) ? parseRunFile('started', readFileSync(path, 'utf8')) : null
    },
    transcript: () => readFileSync(request.transcriptPath, 'latin1'),
    inTree,
    read,
    processes,
    close: async () => {
      if (processes().length > 0) {
        await executor.killSupervisor(request)
        await executor.reap(request)
      }
      await removePath(root)
    },
  }
}

/** The report of a run that ended; anything else fails the test, with what the supervisor said. */
export function reportOf(end: SupervisionEnd, root: string): ExitReport {
  if (end.kind === 'ended') return end.report
  const log = join(root, 'supervisor.log')
  const said = existsSync(log) ? readFileSync(log, 'utf8') : ''
  throw new Error(`the run is ${JSON.stringify(end)}; supervisor: ${said}`)
}

/** Writes an executable script and returns its path. */
export function writeScript(path: string, text: string): string {
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  return path
}
