import { isFault } from '../core/fault.ts'
import { formatIssue } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { resolveWorkerCommand } from '../engine/resolve-worker-command.ts'
import { openClaims } from '../state/claims.ts'
import { openJournals } from '../state/journals.ts'
import { layoutOf } from '../state/layout.ts'
import { systemClock } from '../sys/clock.ts'
import { fileStatus } from '../sys/files.ts'

/** Whether the configured worker command could be started now. */
export function bridgeReadiness(
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): 'present' | 'missing' | 'not-executable' {
  try {
    resolveWorkerCommand(command, environment)
    return 'present'
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    return thrown.code === 'worker/command-not-executable' ? 'not-executable' : 'missing'
  }
}

/** A run whose claim is held, which is the only evidence of life (P§1). */
export type LiveWorker = Readonly<{
  run_id: string
  issue: string
  pid: number | null
  stage: string
  started_at: string | null
  updated_at: string | null
  transcript_path: string
  /** Of the heartbeat, which is written while the worker runs. */
  freshness: 'fresh' | 'stale' | 'none'
}>

/** Sorted by run id, which is by start. */
export function liveWorkers(
  stateDir: string,
  entries: readonly QueueEntry[],
  now: number,
): readonly LiveWorker[] {
  const running = entries.filter(({ phase }) => phase === 'in_progress')
  if (running.length === 0) return []
  const claims = openClaims({ clock: systemClock }, stateDir)
  const journals = openJournals(stateDir)
  const layout = layoutOf(stateDir)
  return running
    .flatMap(({ key, runId }) => {
      if (runId === null || !claims.isHeld(key)) return []
      const journal = journals.read(runId)
      const paths = layout.run(runId)
      const beat = fileStatus(paths.heartbeat)?.mtimeMs ?? null
      const freshness =
        beat === null ? 'none' : now - beat <= LIMITS.heartbeatStaleMs ? 'fresh' : 'stale'
      return [
        {
          run_id: runId,
          issue: formatIssue(key),
          pid: journal?.runner?.pid ?? null,
          stage: journal?.stage ?? 'starting',
          started_at: journal?.createdAt ?? null,
          updated_at: beat === null ? null : new Date(beat).toISOString(),
          transcript_path: paths.transcript,
          freshness,
        } as const,
      ]
    })
    .sort((a, b) => (a.run_id < b.run_id ? -1 : 1))
}
