import { dirname } from 'node:path'
import { isFault, isFaultOf } from '../core/fault.ts'
import type { Clock } from '../core/ports.ts'
import type { EndReason, ExitReport, Launch } from '../core/supervision-files.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { syncFilesystemOf } from '../sys/native.ts'
import type { PreparedRun } from './prepare-worker.ts'
import { writeExit } from './report-files.ts'

/** What is known at one look at a living worker. Times in milliseconds since the epoch. */
export type Observation = Readonly<{
  now: number
  deadlineAt: number
  cancelRequested: boolean
  /** The supervisor itself was asked to end. */
  signalled: boolean
  transcriptFailed: boolean
  /** The result file claims success. */
  hasResult: boolean
  /** How long output, result and tree have been unchanged. */
  quietMs: number
}>

export type EndLimits = Pick<Launch, 'completionGraceMs' | 'stallMs'>

type Rule = Readonly<{
  reason: EndReason
  applies: (seen: Observation, limits: EndLimits) => boolean
}>

/** In order of precedence: what somebody asked for comes before what the time brings. */
const RULES: readonly Rule[] = [
  { reason: 'cancelled', applies: (seen) => seen.cancelRequested },
  { reason: 'signal', applies: (seen) => seen.signalled },
  { reason: 'transcript-failed', applies: (seen) => seen.transcriptFailed },
  {
    reason: 'completion-grace',
    applies: (seen, { completionGraceMs }) =>
      completionGraceMs > 0 && seen.hasResult && seen.quietMs >= completionGraceMs,
  },
  { reason: 'deadline', applies: (seen) => seen.now >= seen.deadlineAt },
  {
    reason: 'stalled',
    applies: (seen, { stallMs }) => stallMs > 0 && seen.quietMs >= stallMs,
  },
]

/** Why a living worker has to be ended now, or null (design §6, §7). */
export function decideEnd(seen: Observation, limits: EndLimits): EndReason | null {
  return RULES.find((rule) => rule.applies(seen, limits))?.reason ?? null
}

/** A full disk may be emptied by somebody; meanwhile the lock tells that the run is not over. */
const RETRY_MS = 1000
const ATTEMPTS = 60

/** The worker's own end by itself proves success only if its files are certain to last. */
const NEEDS_SYNC: readonly EndReason[] = ['exited', 'completion-grace']

type EndFacts = Omit<ExitReport, 'endedAt' | 'transcriptBytes' | 'transcriptTruncated'>

/**
 * Makes everything durable, the report last: transcript, then the file system of the tree, then
 * exit.json. On a full disk the end of the transcript makes room for the report.
 * Faults: sys/io, when that fails for a minute; then there is no exit.json.
 */
export async function reportEnd(
  scene: Readonly<{ clock: Clock; directory: string; run: PreparedRun }>,
  facts: EndFacts,
): Promise<void> {
  const { clock, directory, run } = scene
  const end = { ...facts, ...syncTree(run.launch.treePath, facts) }
  for (let attempt = 1; ; attempt += 1) {
    const { bytes, truncated } = run.transcript.finish()
    const detail = end.detail ?? run.transcript.failure()
    const endedAt = toTimestamp(clock.now())
    try {
      const sizes = { transcriptBytes: bytes, transcriptTruncated: truncated }
      writeExit(directory, { ...end, detail, endedAt, ...sizes })
      return
    } catch (thrown) {
      if (attempt === ATTEMPTS) throw thrown
    }
    if (!run.transcript.makeRoom()) await clock.sleep(RETRY_MS)
  }
}

/** What changes in the facts when the tree cannot be made durable. */
function syncTree(path: string, { reason, unkillable }: EndFacts): Partial<EndFacts> {
  // Processes that cannot be killed usually wait for this very file system.
  if (unkillable.length > 0) return {}
  try {
    // Through its folder, which is ours: a worker may have closed its tree to us, or removed it.
    syncFilesystemOf(dirname(path))
    return {}
  } catch (thrown) {
    // Gone with all around it: then nothing of it has to last.
    const isGone =
      isFaultOf(thrown, 'sys/io') && ['ENOENT', 'ENOTDIR'].includes(thrown.details.code ?? '')
    if (isGone || !NEEDS_SYNC.includes(reason)) return {}
    return {
      reason: 'supervisor-failed',
      detail: isFault(thrown) ? thrown.message : String(thrown),
    }
  }
}
