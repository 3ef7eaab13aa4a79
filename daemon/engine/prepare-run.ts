import { join } from 'node:path'
import { CONTROL_FILES } from '../core/control-files.ts'
import { type Fault, fault } from '../core/fault.ts'
import { formatRepository, repositoryOf } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { isSameLabel } from '../core/labels.ts'
import type { TimelineEvent } from '../core/ports.ts'
import { writeFileAtomic } from '../sys/files.ts'
import { buildContext } from '../worker/build-context.ts'
import { buildWorkerEnvironment } from '../worker/build-environment.ts'
import { renderPrompt } from '../worker/render-prompt.ts'
import { checkEligible, checkExistingPull, findIssue } from './check-eligible.ts'
import { eventOfFault } from './outcome-of-fault.ts'
import { resolveWorkerCommand } from './resolve-worker-command.ts'
import type { RunPorts } from './run-ports.ts'
import { end, next, type StageResult } from './stage-result.ts'

/**
 * Makes everything a worker needs and starts it: the issue as GitHub has it now, a tree at the default
 * branch's tip, prompt and context in the tree, the environment. Repeatable until the worker starts.
 * An issue that does not ask for it any more ends the run.
 * Faults: clone/*, git/*, github/*, worker/command-*, worker/prompt-too-large …
 */
export async function prepareRun(ports: RunPorts, journal: Journal): Promise<StageResult> {
  const { github, git, layout, settings, clock } = ports
  const { key, runId, ticket } = journal
  const repository = repositoryOf(key)
  const argv = resolveWorkerCommand(settings.worker.command, ports.environment)

  // The issue alone first: of one that is gone, nothing else can be asked.
  const [facts, found] = await Promise.all([github.repository(repository), findIssue(github, key)])
  if (facts === null) throw fault('github/not-found', { what: formatRepository(repository) })
  const wanted = checkEligible(key, ticket, settings.triggers, found)
  if (wanted.kind === 'withdrawn') return ended(ports, journal, wanted.fault)
  const { issue, label } = wanted
  const [comments, timeline, viewer] = await Promise.all([
    github.comments(key),
    github.timeline(key),
    github.viewer(),
  ])
  const existing =
    settings.existingPull === 'skip' ? checkExistingPull(key, timeline.value, viewer.login) : null
  if (existing !== null) return ended(ports, journal, existing)

  await removeEarlierTree(ports, journal)
  const clone = await git.inspectClone(repository)
  const base = await git.fetchBase(repository, clone, facts.defaultBranch)
  const tree = await git.createTree(base, {
    runId,
    path: journal.treePath,
    indexPath: journal.indexPath,
    branch: journal.branch,
  })

  const contextJson = buildContext(
    key,
    issue,
    comments.value,
    timeline.value,
    { ...settings.trust, ownId: viewer.id },
    clock.now(),
  )
  const prompt = renderPrompt(ports.templates, {
    key,
    ticket,
    title: issue.title,
    body: issue.body,
    labels: issue.labels,
    branch: journal.branch,
    contextJson,
    protectedPaths: settings.policy.protectedPaths,
    instruction: settings.worker.instruction,
  })
  writeFileAtomic(join(tree.path, CONTROL_FILES.prompt), prompt)
  writeFileAtomic(join(tree.path, CONTROL_FILES.context), contextJson)

  const launching: Journal = {
    ...journal,
    stage: 'launching',
    base: { storePath: base.storePath, branch: base.branch, oid: base.oid },
    remote: base.remote,
    label,
    // A timeline that is behind must not take back what was seen before.
    labeledEventId: newer(journal.labeledEventId, newestLabeling(timeline.value, label)),
  }
  ports.journals.write(launching)
  const run = layout.run(runId)
  await ports.executor.launch({
    runId,
    directory: run.directory,
    treePath: tree.path,
    argv,
    environment: buildWorkerEnvironment(
      ports.environment,
      settings.worker.environmentAllowlist,
      ports.secrets(),
      {
        key,
        title: issue.title,
        body: issue.body,
        labels: issue.labels,
        contextJson,
        treePath: tree.path,
        runId,
        branch: journal.branch,
      },
    ),
    resultPath: join(tree.path, CONTROL_FILES.result),
    transcriptPath: run.transcript,
    transcriptMaxBytes: settings.worker.transcriptMaxBytes,
    timeoutMs: settings.worker.timeoutMs,
    completionGraceMs: settings.worker.completionGraceMs,
    stallMs: settings.worker.stallMs,
  })
  return next(launching)
}

/** The issue does not ask for the run any more, or somebody works on it already. */
function ended({ clock, random }: RunPorts, journal: Journal, reason: Fault): StageResult {
  const run = { runId: journal.runId, now: clock.now(), jitter: random() }
  return end(journal, eventOfFault(reason, run))
}

/**
 * The tree of the attempt before this one has been kept until now (design §7). An attempt that ended before
 * it came here left that to this one, so what lies before it is looked at too.
 */
async function removeEarlierTree(
  ports: RunPorts,
  { key, runId, previousRunId }: Journal,
): Promise<void> {
  const { git, layout, settings } = ports
  const repository = repositoryOf(key)
  let earlier = previousRunId
  while (earlier !== null && earlier !== runId) {
    const path = layout.worktree(repository, earlier)
    const tree = { path, indexPath: layout.run(earlier).index }
    const archivePath = layout.archived(repository, earlier)
    if (!settings.archivesTrees) await git.removeTree(tree)
    else if (await git.archiveTree(tree, archivePath)) {
      ports.log.info('tree archived', { runId: earlier, path: archivePath })
    }
    earlier = earlierStill(ports, earlier)
  }
}

/** The run before one that made no tree; null = that one looked after it. */
function earlierStill({ journals }: RunPorts, runId: string): string | null {
  try {
    const journal = journals.read(runId)
    const madeNone = journal?.stage === 'starting' || journal?.endedIn === 'owned'
    return journal !== null && madeNone ? journal.previousRunId : null
  } catch {
    return null // a damaged journal of an earlier run is no reason to stop this one
  }
}

function newer(known: number | null, found: number | null): number | null {
  if (known === null || found === null) return known ?? found
  return Math.max(known, found)
}

/** The labelling this run answers; a newer one after its end asks for a new generation (design §6). */
export function newestLabeling(timeline: readonly TimelineEvent[], label: string): number | null {
  const ids = timeline
    .filter(
      ({ kind, label: name }) => kind === 'labeled' && name !== null && isSameLabel(name, label),
    )
    .map(({ id }) => id)
  return ids.length === 0 ? null : Math.max(...ids)
}
