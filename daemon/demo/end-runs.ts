import { openJournals } from '../state/journals.ts'
import { layoutOf } from '../state/layout.ts'
import { readStarted } from '../supervision/control-run.ts'
import { killOwned } from '../sys/owner-mark.ts'

/** Kills the runner, the supervisor and the worker of every run. */
export function endRuns(stateDir: string): void {
  const journals = openJournals(stateDir)
  for (const runId of journals.list()) {
    const journal = journals.read(runId)
    if (journal === null) continue
    const { directory } = layoutOf(stateDir).run(runId)
    const started = readStarted({ runId, directory, treePath: journal.treePath })
    for (const leader of [journal.runner, started?.supervisor, started?.worker]) {
      if (leader) killOwned(leader)
    }
  }
}
