import { dirname, join } from 'node:path'
import { classifyEnd, type KnownEnd } from '../core/classify-end.ts'
import { CONTROL_FILES } from '../core/control-files.ts'
import type { SupervisedRun, SupervisionEnd } from '../core/executor.ts'
import { type Fault, fault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { shortenCharacters } from '../core/voice.ts'
import { fileStatus, removeFile, writeFileAtomic } from '../sys/files.ts'
import { isLocked } from '../sys/kernel-lock.ts'
import { syncFilesystemOf } from '../sys/sync-filesystem.ts'
import { readResult } from '../worker/read-result.ts'
import { checkEligible, findIssue } from './check-eligible.ts'
import { eventOfFault } from './outcome-of-fault.ts'
import { type RunPorts, secretsOf } from './run-ports.ts'
import { end, LEFT, next, type StageResult } from './stage-result.ts'

/**
 * Waits for the worker's end and judges it (design §6): exit 0 and a valid result, or an unknown exit
 * with a valid result and no process left. The result is archived before anything else happens to it.
 * A worker that was cancelled ends the run. Faults: worker/*, sys/unkillable, sys/io.
 */
export async function concludeRun(ports: RunPorts, journal: Journal): Promise<StageResult> {
  const run: SupervisedRun = {
    runId: journal.runId,
    directory: ports.layout.run(journal.runId).directory,
    treePath: journal.treePath,
  }
  for (;;) {
    const ending = await ports.executor.watch(run, {
      onHeartbeat: () => writeHeartbeat(ports, journal),
      signal: ports.signal,
    })
    const endClass = classifyEnd(ending, endFacts(ports, journal))
    if (endClass.kind === 'unwatched') return LEFT
    removeFile(ports.layout.run(journal.runId).heartbeat)
    if (endClass.kind === 'overdue') {
      if (await ports.executor.killSupervisor(run)) continue
      throw fault('sys/unkillable', { run: journal.runId })
    }
    const once = endClass.kind === 'unreaped' ? endClass.onceReaped : endClass
    const mayBeLeft =
      endClass.kind === 'unreaped' || isLocked(ports.layout.run(journal.runId).treeLock)
    const known = mayBeLeft ? await reapFirst(ports, run, ending, once) : once
    if (known.kind === 'cancelled') {
      const run = { runId: journal.runId, now: ports.clock.now(), jitter: 0 }
      return end(journal, eventOfFault(await whyCancelled(ports, journal), run))
    }
    return next(archive(ports, journal, known))
  }
}

/**
 * Processes that are left may still write: nothing is judged before they are gone (P§1). A report names
 * those that could not be ended when it was written, which is once; so this looks anew each time.
 */
async function reapFirst(
  { executor, log }: RunPorts,
  run: SupervisedRun,
  end: SupervisionEnd,
  onceReaped: KnownEnd,
): Promise<KnownEnd> {
  const reaped = await executor.reap(run)
  log.warn('run swept', { runId: run.runId, supervisor: end.kind, sweep: reaped.kind })
  if (reaped.kind === 'unkillable') throw fault('sys/unkillable', { run: run.runId })
  if (READS_RESULT.has(onceReaped.kind)) makeDurable(run.treePath)
  return onceReaped
}

const READS_RESULT: ReadonlySet<KnownEnd['kind']> = new Set(['read-result', 'unknown-exit'])

/** As a supervisor does when nobody is left. One that is gone with its folder has nothing that could last. */
function makeDurable(treePath: string): void {
  const folder = dirname(treePath)
  if (fileStatus(folder) !== null) syncFilesystemOf(folder)
}

/** The cancel itself says no reason; the issue does, when it can be asked. */
async function whyCancelled({ github, settings }: RunPorts, journal: Journal): Promise<Fault> {
  const { key, ticket } = journal
  const cancelled = fault('issue/withdrawn', {
    issue: formatIssue(key),
    reason: 'its run was cancelled',
  })
  try {
    const wanted = checkEligible(key, ticket, settings.triggers, await findIssue(github, key))
    return wanted.kind === 'withdrawn' ? wanted.fault : cancelled
  } catch {
    return cancelled // the worker has been ended, whatever GitHub says now
  }
}

function archive(ports: RunPorts, journal: Journal, endClass: KnownEnd): Journal {
  const transcript = ports.layout.run(journal.runId).transcript
  switch (endClass.kind) {
    case 'failed':
      throw endClass.fault
    case 'not-started':
      throw fault('worker/supervisor-failed', { reason: 'it ended before it started a worker' })
    case 'read-result':
      return archiveResult(ports, journal, transcript)
    case 'unknown-exit':
      try {
        return archiveResult(ports, journal, transcript)
      } catch {
        // Without a valid result we cannot say whether the worker failed or was cut off.
        throw endClass.fault
      }
    default:
      throw fault('internal/unexpected', { reason: `no way on from ${endClass.kind}` })
  }
}

function archiveResult(ports: RunPorts, journal: Journal, transcript: string): Journal {
  const path = join(journal.treePath, CONTROL_FILES.result)
  const { parsed, bytes } = readResult(path, transcript, secretsOf(ports))
  if (parsed.kind === 'failure') {
    const { status, summary } = parsed
    throw fault('worker/reported-failure', { status, summary: firstLine(summary), transcript })
  }
  writeFileAtomic(ports.layout.run(journal.runId).result, bytes)
  const finished: Journal = { ...journal, stage: 'finished' }
  ports.journals.write(finished)
  return finished
}

function firstLine(text: string): string {
  return shortenCharacters(text.split('\n', 1)[0] ?? '', 200)
}

function endFacts(ports: RunPorts, journal: Journal): Parameters<typeof classifyEnd>[1] {
  const { worker } = ports.settings
  return {
    program: worker.command[0],
    transcriptPath: ports.layout.run(journal.runId).transcript,
    timeoutMs: worker.timeoutMs,
    stallMs: worker.stallMs,
  }
}

/** For people who look (`status`); never evidence of life (P§1). */
function writeHeartbeat(ports: RunPorts, journal: Journal): void {
  const paths = ports.layout.run(journal.runId)
  const now = toTimestamp(ports.clock.now())
  const heartbeat = {
    format: 'caduceus-heartbeat',
    version: 1,
    runId: journal.runId,
    issue: formatIssue(journal.key),
    pid: ports.self.pid,
    startedAt: journal.createdAt,
    updatedAt: now,
    transcript: paths.transcript,
  }
  writeFileAtomic(paths.heartbeat, `${JSON.stringify(heartbeat)}\n`)
}
