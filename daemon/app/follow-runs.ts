import { type Journal, PUBLISH_STAGES, type RunStage } from '../core/journal.ts'
import type { Journals } from '../core/ports.ts'
import { openJournals } from '../state/journals.ts'
import { layoutOf } from '../state/layout.ts'
import { readFileBounded } from '../sys/files.ts'

/** What people are told as a run reaches a stage, in the order of the stages. */
const STAGE_LINES = {
  starting: 'claimed the issue',
  owned: 'a detached runner took over',
  launching: 'made an isolated tree and started the worker under its supervisor',
  finished: 'the worker succeeded; its result is archived',
  publishing: 'checked the change and froze every outgoing text',
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
 * Tells each thing about the runs of a state directory once, in order, as it is seen: stages, publish
 * markers and the worker's own output. Call the returned function again and again.
 */
export function followRuns(
  stateDir: string,
  tell: (line: string, origin: 'daemon' | 'worker') => void,
): () => void {
  const journals = openJournals(stateDir)
  const layout = layoutOf(stateDir)
  const told = new Set<string>()
  const shown = new Map<string, number>()
  const once = (id: string, line: string): void => {
    if (told.has(id)) return
    told.add(id)
    tell(line, 'daemon')
  }
  return () => {
    for (const runId of journals.list()) {
      const journal = readOrNull(journals, runId)
      if (journal === null) continue
      for (const stage of stagesOf(journal)) once(`${runId} ${stage}`, STAGE_LINES[stage])
      const transcript = readFileBounded(layout.run(runId).transcript, TRANSCRIPT_BYTES)
      const text = transcript?.toString('utf8') ?? ''
      const end = text.lastIndexOf('\n') + 1
      for (const line of text
        .slice(shown.get(runId) ?? 0, end)
        .split('\n')
        .slice(0, -1)) {
        tell(line, 'worker')
      }
      shown.set(runId, end)
      for (const [stage, marker] of Object.entries(journal.markers)) {
        const line = MARKER_LINES[stage] ?? stage
        once(`${runId} ${stage}`, line.endsWith('#') ? line + marker : line)
      }
      if (journal.epoch > 1)
        once(
          `${runId} epoch ${journal.epoch}`,
          `the next tick took the run over ${locationOf(journal)}`,
        )
      if (journal.notBefore !== null && journal.stage !== 'settled')
        once(`${runId} until ${journal.notBefore}`, waitOf(journal, journal.notBefore))
      if (journal.stage === 'settled' && journal.outcome?.error !== undefined) {
        once(`${runId} error`, journal.outcome.error.message)
      }
    }
  }
}

/** The stages a run has been through: it may pass several between two looks. */
function stagesOf({ stage, endedIn, publication }: Journal): readonly (keyof typeof STAGE_LINES)[] {
  const all = Object.keys(STAGE_LINES) as readonly (keyof typeof STAGE_LINES)[]
  const reached = endedIn ?? stage
  const at = all.findIndex((name) => name === reached)
  if (at >= 0) return all.slice(0, at + 1)
  return publication === null ? all.slice(0, -1) : all
}

/** A write that was under way when its runner died may still take effect; it is not repeated before that is over. */
function waitOf({ intent }: Journal, until: string): string {
  const why =
    intent === null ? '' : `a write of "${intent.stage}" was cut off and may still arrive; `
  return `${why}the run goes on at ${until}`
}

/** Where a run stands, for people who read the stages in the documentation. */
function locationOf({ stage, markers }: Journal): string {
  const done = PUBLISH_STAGES.filter((name) => markers[name] !== undefined).at(-1)
  const behind = stage === 'publishing' && done !== undefined ? `, after ${done}` : ''
  return `at stage ${stage}${behind}`
}

function readOrNull(journals: Journals, runId: string): ReturnType<Journals['read']> {
  try {
    return journals.read(runId)
  } catch {
    return null // shown by status; a demonstration goes on
  }
}
