import { CONTROL_FILES } from '../core/control-files.ts'
import { describeFault, fault } from '../core/fault.ts'
import type { Journal, Publication, PublishPlan } from '../core/journal.ts'
import type { CapturedTree, RunTree } from '../core/ports.ts'
import { redact } from '../core/redaction.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { renderDryRun } from '../publish/render-body.ts'
import { renderPublication } from '../publish/render-publication.ts'
import { validateTree } from '../publish/validate-tree.ts'
import { writeFileAtomic } from '../sys/files.ts'
import { readResult } from '../worker/read-result.ts'
import type { WorkerResult } from '../worker/validate-result.ts'
import { type RunPorts, secretsOf } from './run-ports.ts'
import { next, type StageResult } from './stage-result.ts'

/** How much of a difference a dry-run report shows. */
const DIFFERENCE_BYTES = 256 * 1024

/**
 * From the archived result and the tree to frozen texts: what would leave is decided and judged here,
 * before the first effect (design §9). A dry run writes its report instead and ends.
 * Faults: worker/tree-unusable, publish/policy, publish/forbidden-word, publish/too-long, git/*, github/*.
 */
export async function preparePublication(ports: RunPorts, journal: Journal): Promise<StageResult> {
  const result = archivedResult(ports, journal)
  const tree = treeOf(journal)
  const captured = await ports.git.captureTree(tree, Object.values(CONTROL_FILES))
  if (journal.dryRun) return next(await previewRun(ports, journal, result, tree, captured))

  const publication = await renderFor(ports, journal, result, captured)
  const publishing: Journal = { ...journal, stage: 'publishing', publication }
  ports.journals.write(publishing)
  return next(publishing)
}

async function renderFor(
  ports: RunPorts,
  journal: Journal,
  result: WorkerResult,
  captured: CapturedTree,
): Promise<Publication> {
  const { policy } = ports.settings
  const plan = planOf(journal, captured)
  if (plan === 'code') validateTree(captured, policy, journal.treePath)
  const edits = captured.changes.length
  const note =
    plan === 'findings' && edits > 0
      ? `\n\n*(${edits} edited file(s) were not published: this ticket asked for an investigation.)*`
      : ''
  return renderPublication(
    journal,
    { ...result, summary: result.summary + note },
    plan,
    plan === 'code' ? captured : null,
    await ports.github.viewer(),
    policy,
    ports.clock.now(),
  )
}

/** The label decides the kind of ticket; a success without changes is told, not published (design §6). */
function planOf(journal: Journal, captured: CapturedTree): PublishPlan {
  if (journal.ticket === 'investigation') return 'findings'
  return captured.changes.length === 0 ? 'no-changes' : 'code'
}

/** Everything a publication would do becomes a report; what would refuse it becomes a warning (R§8.9). */
async function previewRun(
  ports: RunPorts,
  journal: Journal,
  result: WorkerResult,
  tree: RunTree,
  captured: CapturedTree,
): Promise<Journal> {
  const warnings: string[] = []
  let publication: Publication | null = null
  try {
    publication = await renderFor(ports, journal, result, captured)
  } catch (refusal) {
    warnings.push(describeFault(refusal)) // a dry run reports what a real one would stop at
  }
  const paths = ports.layout.run(journal.runId)
  const difference = await ports.git.describeDifference(
    tree.storePath,
    tree.baseOid,
    captured.treeOid,
    DIFFERENCE_BYTES,
  )
  const now = toTimestamp(ports.clock.now())
  const report = renderDryRun(journal, publication, {
    changes: captured.changes,
    difference,
    transcriptPath: paths.transcript,
    resultPath: paths.result,
    treePath: journal.treePath,
    warnings,
    writtenAt: now,
  })
  writeFileAtomic(paths.dryRunReport, redact(report, secretsOf(ports)))
  const outcome = { on: 'previewed', at: now, runId: journal.runId } as const
  const ended: Journal = { ...journal, stage: 'ended', outcome }
  ports.journals.write(ended)
  return ended
}

function archivedResult(ports: RunPorts, journal: Journal): WorkerResult {
  const { result: path, transcript } = ports.layout.run(journal.runId)
  const { parsed } = readResult(path, transcript, secretsOf(ports))
  if (parsed.kind === 'success') return parsed.result
  throw fault('internal/unexpected', { reason: `the archived result says "${parsed.status}"` })
}

function treeOf(journal: Journal): RunTree {
  if (journal.base === null)
    throw fault('internal/unexpected', { reason: 'the journal has no base' })
  return {
    storePath: journal.base.storePath,
    path: journal.treePath,
    indexPath: journal.indexPath,
    baseOid: journal.base.oid,
  }
}
