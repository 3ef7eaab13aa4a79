import { type Journal, PUBLISH_ACTIONS, type RunStage } from '../core/journal.ts'
import type { Journals } from '../core/ports.ts'
import { openJournals } from '../state/journals.ts'
import { layoutOf } from '../state/layout.ts'
import { readFileBounded } from '../sys/files.ts'

/** What is printed when a run reaches a stage, in the order of the stages. */
const STAGE_LINES = {
  starting: 'claimed the issue',
  owned: 'a detached runner took over',
  launching: 'made an isolated tree and started the worker under its supervisor',
  finished: 'the worker succeeded; its result is archived',
  publishing: 'checked the change and prepared every outgoing text',
} as const satisfies Readonly<Partial<Record<RunStage, string>>>

const MARKER_LINES: Readonly<Record<string, string>> = {
  committed: 'committed',
  pushed: 'pushed the branch',
  pr_created: 'opened pull request #',
  commented: 'commented on the issue',
  label_removed: 'removed the label',
  closed: 'closed the issue',
}

const TRANSCRIPT_BYTES = 1024 * 1024

/**
 * Prints what happens to the runs of a state directory, each event printOnce and in order: stages, publish actions
 * and the worker's own output. Each call of the returned function prints what is new since the last call.
 */
export function followRuns(
  stateDir: string,
  print: (line: string, origin: 'daemon' | 'worker') => void,
): () => void {
  const journals = openJournals(stateDir)
  const layout = layoutOf(stateDir)
  const printed = new Set<string>()
  const shown = new Map<string, number>()
  const printOnce = (id: string, line: string): void => {
    if (printed.has(id)) return
    printed.add(id)
    print(line, 'daemon')
  }
  return () => {
    for (const runId of journals.list()) {
      const journal = readOrNull(journals, runId)
      if (journal === null) continue
      for (const stage of stagesOf(journal)) printOnce(`${runId} ${stage}`, STAGE_LINES[stage])
      const transcript = readFileBounded(layout.run(runId).transcript, TRANSCRIPT_BYTES)
      const text = transcript?.toString('utf8') ?? ''
      const end = text.lastIndexOf('\n') + 1
      for (const line of text
        .slice(shown.get(runId) ?? 0, end)
        .split('\n')
        .slice(0, -1)) {
        print(line, 'worker')
      }
      shown.set(runId, end)
      for (const [stage, marker] of Object.entries(journal.markers)) {
        const line = MARKER_LINES[stage] ?? stage
        printOnce(`${runId} ${stage}`, line.endsWith('#') ? line + marker : line)
      }
      if (journal.epoch > 1)
        printOnce(
          `${runId} epoch ${journal.epoch}`,
          `the next tick took the run over ${locationOf(journal)}`,
        )
      if (journal.notBefore !== null && journal.stage !== 'settled')
        printOnce(`${runId} until ${journal.notBefore}`, waitOf(journal, journal.notBefore))
      if (journal.stage === 'settled' && journal.outcome?.error !== undefined) {
        printOnce(`${runId} error`, journal.outcome.error.message)
      }
    }
  }
}

/** The stages that a run has passed; there may be several new ones between two calls. */
function stagesOf({ stage, endedIn, publication }: Journal): readonly (keyof typeof STAGE_LINES)[] {
  const all = Object.keys(STAGE_LINES) as readonly (keyof typeof STAGE_LINES)[]
  const reached = endedIn ?? stage
  const at = all.findIndex((name) => name === reached)
  if (at >= 0) return all.slice(0, at + 1)
  return publication === null ? all.slice(0, -1) : all
}

/** A write that was cut off may still take effect, so it is repeated only after the settle window (I6). */
function waitOf({ intent }: Journal, until: string): string {
  const why =
    intent === null ? '' : `a write of "${intent.stage}" was cut off and may still arrive; `
  return `${why}the run goes on at ${until}`
}

/** The stage and the last publish action of a run, by their documented names. */
function locationOf({ stage, markers }: Journal): string {
  const done = PUBLISH_ACTIONS.filter((name) => markers[name] !== undefined).at(-1)
  const behind = stage === 'publishing' && done !== undefined ? `, after ${done}` : ''
  return `at stage ${stage}${behind}`
}

function readOrNull(journals: Journals, runId: string): ReturnType<Journals['read']> {
  try {
    return journals.read(runId)
  } catch {
    return null // `status` shows a broken journal; the demo goes on
  }
}
