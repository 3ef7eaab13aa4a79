import { formatIssue, type IssueKey, issueId } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim } from '../core/ports.ts'
import { plausibleWait, toTimestamp } from '../core/timestamp.ts'
import { applyToQueue } from '../core/transitions.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

export type RecoveryReport = Readonly<{
  adopted: readonly string[]
  problems: readonly TickProblem[]
}>

type Candidate = Readonly<{ key: IssueKey; runId: string }>

/**
 * Looks at every entry in progress and every claim file: a held claim means that its run is alive. A
 * free one means that its runner left or died; the run is taken over where its journal says it stands,
 * or cleared away when there is nothing to carry on (P§1, P§2). There is no third case.
 */
export async function recover(ports: TickPorts): Promise<RecoveryReport> {
  const adopted: string[] = []
  const problems: TickProblem[] = []
  for (const candidate of candidates(ports)) {
    if (ports.clock.now() >= ports.deadlineAt) break
    try {
      if (await lookAfter(ports, candidate)) adopted.push(candidate.runId)
    } catch (thrown) {
      problems.push({ where: formatIssue(candidate.key), thrown }) // its claim is free again: next tick
    }
  }
  return { adopted, problems }
}

function candidates({ store, claims }: TickPorts): readonly Candidate[] {
  const running = Object.values(store.readQueue().entries).flatMap(({ phase, key, runId }) =>
    phase === 'in_progress' && runId !== null ? [{ key, runId }] : [],
  )
  const known = new Set(running.map(({ runId }) => runId))
  return [...running, ...claims.list().filter(({ runId }) => !known.has(runId))]
}

/** true = a runner was started for it. */
async function lookAfter(ports: TickPorts, { key, runId }: Candidate): Promise<boolean> {
  if (!isDue(ports, ports.journals.read(runId))) return false
  const claim = ports.claims.take(key, runId)
  if (claim === null) return false
  try {
    // Read again under the claim: a runner may have ended between the look and the lock.
    const journal = ports.journals.read(runId)
    if (!isDue(ports, journal)) return false
    if (journal !== null && hasWorkLeft(ports, journal)) {
      await takeOver(ports, claim, journal)
      return true
    }
    await requeue(ports, key, runId)
    claim.release()
    return false
  } finally {
    claim.close()
  }
}

/** Nothing was begun, all is done, or the entry has moved on without this run: then there is none. */
function hasWorkLeft(ports: TickPorts, { stage, key, runId }: Journal): boolean {
  if (stage === 'ended') return true
  if (stage === 'starting' || stage === 'settled') return false
  return ports.store.readQueue().entries[issueId(key)]?.runId === runId
}

function isDue(ports: TickPorts, journal: Journal | null): boolean {
  const now = ports.clock.now()
  const until = plausibleWait(journal?.notBefore ?? null, now, LIMITS.rateLimitCapMs)
  return until === null || until <= now
}

/** Nothing was begun, so nothing is counted; an entry that another run has is left alone. */
async function requeue(ports: TickPorts, key: IssueKey, runId: string): Promise<void> {
  const id = issueId(key)
  const event = { on: 'not-started', at: toTimestamp(ports.clock.now()), runId } as const
  const requeued = await ports.store.changeQueue((queue) => {
    const requeueing = applyToQueue(queue, id, event, ports.settings.retry)
    return { state: requeueing.queue, value: requeueing.entry !== null }
  })
  if (requeued) ports.log.info('run never started', { issue: id, runId })
}

/** Ends what the dead runner left acting before anybody else acts for the run (P§1). */
async function takeOver(ports: TickPorts, claim: Claim, journal: Journal): Promise<void> {
  await ports.prepareStart()
  if (journal.runner !== null) ports.endLeftovers(journal.runner)
  ports.journals.write({ ...journal, epoch: journal.epoch + 1, runner: null })
  await ports.startRunner(claim, journal.runId)
  ports.log.info('run adopted', {
    issue: formatIssue(journal.key),
    runId: journal.runId,
    stage: journal.stage,
  })
}
