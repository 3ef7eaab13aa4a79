import { dirname } from 'node:path'
import type { EndReason } from '../core/end-reasons.ts'
import { isFault, isFaultOf } from '../core/fault.ts'
import type { Clock } from '../core/ports.ts'
import type { ExitReport } from '../core/supervision-files.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { syncFilesystemOf } from '../sys/sync-filesystem.ts'
import type { PreparedWorker } from './prepare-worker.ts'
import { writeExit } from './report-files.ts'

/** A full disk may be emptied meanwhile; the held lock shows that the run is not over. */
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
  scene: Readonly<{ clock: Clock; directory: string; run: PreparedWorker }>,
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
