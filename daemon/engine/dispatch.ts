import { eligibleEntries } from '../core/eligible-entries.ts'
import { describeFault } from '../core/fault.ts'
import { formatIssue, issueId, repositoryId, repositoryOf } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { QueueEntry, QueueState } from '../core/queue-state.ts'
import { reopenJournal } from '../core/resume.ts'
import { branchOf } from '../core/run-id.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue } from '../core/transitions.ts'
import { mustEnd, type TickPorts, type TickProblem } from './tick-ports.ts'

export type DispatchReport = Readonly<{
  started: readonly string[]
  problems: readonly TickProblem[]
}>

/**
 * Claims what may run now and starts one detached runner each (P§2):
 * claim → queue → journal `starting` → spawn → close our copy of the claim. Whoever dies in between
 * leaves either a held claim (somebody lives) or a free one with `starting` (nothing was begun).
 * @param usable `repositoryId`s whose clone may be used
 */
export async function dispatch(
  ports: TickPorts,
  usable: ReadonlySet<string>,
): Promise<DispatchReport> {
  const { settings, clock, store } = ports
  const queue = onlyRunnable(store.readQueue(), usable)
  const candidates = eligibleEntries(queue, clock.now(), settings.capacity, settings.circuits)
  const limited = settings.maxClaims === 0 ? candidates : candidates.slice(0, settings.maxClaims)
  const started: string[] = []
  const problems: TickProblem[] = []
  try {
    if (limited.length > 0) await ports.prepareStart()
  } catch (thrown) {
    return { started, problems: [{ where: 'starting runs', thrown }] } // nothing was claimed
  }
  for (const entry of limited) {
    if (mustEnd(ports)) break
    try {
      const runId = await start(ports, entry)
      if (runId !== null) started.push(runId)
    } catch (thrown) {
      problems.push({ where: formatIssue(entry.key), thrown }) // its claim is free again: next tick
    }
  }
  return { started, problems }
}

/** Queued entries of other repositories wait; running ones still count against the limits. */
function onlyRunnable(queue: QueueState, usable: ReadonlySet<string>): QueueState {
  const kept = Object.entries(queue.entries).filter(
    ([, entry]) => entry.phase !== 'queued' || usable.has(repositoryId(repositoryOf(entry.key))),
  )
  return { ...queue, entries: Object.fromEntries(kept) }
}

async function start(ports: TickPorts, candidate: QueueEntry): Promise<string | null> {
  const reopened = reopen(ports, candidate)
  const runId = reopened?.runId ?? ports.newRunId()
  const claim = ports.claims.take(candidate.key, runId)
  if (claim === null) return null
  try {
    const entry = await claimEntry(ports, candidate, runId)
    if (entry === null) {
      claim.release()
      return null
    }
    const journal = reopened ?? newJournal(ports, entry, runId, candidate.lastRunId)
    const ownedUntil = toTimestamp(ports.clock.now() + LIMITS.startMs)
    ports.journals.write({ ...journal, ownedUntil })
    await ports.startRunner(claim, runId)
    ports.log.info('run started', { issue: formatIssue(entry.key), runId })
    return runId
  } finally {
    claim.close()
  }
}

/** The run that goes on instead of a new one (`queue reset`); null = there is none, or it cannot. */
function reopen(ports: TickPorts, { resume }: QueueEntry): Journal | null {
  if (resume === null) return null
  try {
    const journal = ports.journals.read(resume)
    return journal === null ? null : reopenJournal(journal)
  } catch (thrown) {
    // A damaged journal must not keep its issue from being worked on; the file stays for people.
    ports.log.warn('run cannot be resumed', { runId: resume, error: describeFault(thrown) })
    return null
  }
}

/** Only one tick plans at a time, so all that can have happened since is the end of other runs. */
async function claimEntry(
  ports: TickPorts,
  { key }: QueueEntry,
  runId: string,
): Promise<QueueEntry | null> {
  return ports.store.changeQueue<QueueEntry | null>((queue) => {
    const at = toTimestamp(ports.clock.now())
    const event = { on: 'claimed', at, runId } as const
    const claimed = applyToQueue(queue, issueId(key), event, ports.settings.retry)
    return { state: claimed.queue, value: claimed.entry }
  })
}

function newJournal(
  ports: TickPorts,
  entry: QueueEntry,
  runId: string,
  previousRunId: string | null,
): Journal {
  const { layout, settings, clock } = ports
  return {
    runId,
    key: entry.key,
    ticket: entry.ticket,
    generation: entry.generation,
    previousRunId,
    attempt: entry.attempts + 1,
    dryRun: settings.dryRun,
    build: ports.build,
    createdAt: toTimestamp(clock.now()),
    epoch: 1,
    adoptions: 0,
    stage: 'starting',
    branch: branchOf(entry.key.number, runId),
    base: null,
    remote: null,
    treePath: layout.worktree(repositoryOf(entry.key), runId),
    indexPath: layout.run(runId).index,
    label: settings.triggers[entry.ticket],
    labeledEventId: entry.labeledEventId,
    runner: null,
    ownedUntil: null,
    publication: null,
    markers: {},
    intent: null,
    notBefore: null,
    trouble: null,
    outcome: null,
    endedIn: null,
  }
}
