import { fault } from '../core/fault.ts'
import type { Journals } from '../core/ports.ts'
import { isRunId } from '../core/run-id.ts'
import { ensureDirectory, fileStatus, listDirectory, writeFileAtomic } from '../sys/files.ts'
import { layoutOf } from './layout.ts'
import { readStoredFile, renderStoredFile } from './stored-file.ts'
import { JOURNAL_FORMAT } from './stored-formats.ts'

/**
 * The journals under `runs/<run id>/` (design §5). Nothing here locks: a journal is written only by the
 * holder of its run's claim, and replaced as a whole.
 * `read` faults with state/corrupt, state/format-newer or sys/io for that one journal; `list` names the
 * run directories whatever is in them, oldest first, so one bad journal does not hide the others.
 */
export function openJournals(stateDir: string): Journals {
  const layout = layoutOf(stateDir)
  return {
    read: (runId) => {
      const path = layout.run(runId).journal
      const reading = readStoredFile(path, JOURNAL_FORMAT)
      if (reading.kind === 'absent') return null
      const reason =
        reading.kind === 'corrupt' ? reading.reason : strayReason(reading.content.runId, runId)
      if (reading.kind === 'read' && reason === null) return reading.content
      throw fault('state/corrupt', { path, reason, kept: 'Nothing was changed.', archive: null })
    },
    write: (journal) => {
      const { directory, journal: path } = layout.run(journal.runId)
      const text = renderStoredFile(path, JOURNAL_FORMAT, journal)
      ensureDirectory(directory)
      writeFileAtomic(path, text)
    },
    list: () =>
      listDirectory(layout.directories.runs).filter(
        (name) => isRunId(name) && fileStatus(layout.run(name).directory)?.kind === 'directory',
      ),
  }
}

function strayReason(found: string, wanted: string): string | null {
  return found === wanted ? null : `it belongs to the run ${found}`
}
