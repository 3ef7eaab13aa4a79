import { formatIssue, issueId, repositoryId, repositoryOf } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { QueueEntry, QueueState } from '../core/queue.ts'
import { branchOf } from '../core/run-id.ts'
import { type Capacity, eligibleEntries } from '../core/scheduling.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue } from '../core/transitions.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

export type DispatchReport = Readonly<{
  started: readonly string[]
  problems: readonly TickProblem[]
}>

/** The longest wait that can rightly be stored; more comes from a clock that jumped (design §5). */
export const LONGEST_WAIT_MS = Math.max(LIMITS.backoffCapMs, LIMITS.rateLimitCapMs)

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
  const candidates = eligibleEntries(queue, clock.now(), settings.capacity, LONGEST_WAIT_MS)
  const limited = settings.maxClaims === 0 ? candidates : candidates.slice(0, settings.maxClaims)
  const started: string[] = []
  const problems: TickProblem[] = []
  try {
    if (limited.length > 0) await ports.prepareStart()
  } catch (thrown) {
    return { started, problems: [{ where: 'starting runs', thrown }] } // nothing was claimed
  }
  for (const entry of limited) {
    if (clock.now() >= ports.deadlineAt) break
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
  const runId = ports.newRunId()
  const claim = ports.claims.take(candidate.key, runId)
  if (claim === null) return null
  try {
    const entry = await claimEntry(ports, candidate, runId)
    if (entry === null) {
      claim.release()
      return null
    }
    ports.journals.write(newJournal(ports, entry, runId, candidate.lastRunId))
    await ports.startRunner(claim, runId)
    ports.log.info('run started', { issue: formatIssue(entry.key), runId })
    return runId
  } finally {
    claim.close()
  }
}

/** Under the state lock once more: it must still be queued, and there must still be room for it. */
async function claimEntry(
  ports: TickPorts,
  { key }: QueueEntry,
  runId: string,
): Promise<QueueEntry | null> {
  const id = issueId(key)
  const { capacity, retry } = ports.settings
  return ports.store.changeQueue<QueueEntry | null>((queue) => {
    const entry = queue.entries[id]
    if (entry === undefined || !hasRoom(queue, entry, capacity))
      return { state: queue, value: null }
    const at = toTimestamp(ports.clock.now())
    const claimed = applyToQueue(queue, id, { on: 'claimed', at, runId }, retry)
    return { state: claimed.queue, value: claimed.entry }
  })
}

function hasRoom(queue: QueueState, entry: QueueEntry, capacity: Capacity): boolean {
  const repository = repositoryId(repositoryOf(entry.key))
  const running = Object.values(queue.entries).filter(({ phase }) => phase === 'in_progress')
  const here = running.filter(({ key }) => repositoryId(repositoryOf(key)) === repository)
  return (
    running.length < capacity.parallelism &&
    (capacity.perRepository === 0 || here.length < capacity.perRepository)
  )
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
    stage: 'starting',
    branch: branchOf(entry.key.number, runId),
    base: null,
    treePath: layout.worktree(repositoryOf(entry.key), runId),
    indexPath: layout.run(runId).index,
    label: settings.triggers[entry.ticket],
    labeledEventId: entry.labeledEventId,
    runner: null,
    publication: null,
    markers: {},
    intent: null,
    notBefore: null,
    trouble: null,
    outcome: null,
  }
}
