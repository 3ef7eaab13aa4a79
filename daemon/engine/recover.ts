import { fault, isFault } from '../core/fault.ts'
import { formatIssue, type IssueKey, issueId } from '../core/issue-key.ts'
import type { Intent, Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { Claim } from '../core/ports.ts'
import { fromTimestamp, plausibleWait, toTimestamp } from '../core/timestamp.ts'
import { applyToQueue, type PhaseEvent } from '../core/transitions.ts'
import { fileStatus } from '../sys/files.ts'
import { eventOfFault } from './outcome-of-fault.ts'
import { applyEnd } from './record-end.ts'
import { mustEnd, type TickPorts, type TickProblem } from './tick-ports.ts'

export type RecoveryReport = Readonly<{
  adopted: readonly string[]
  problems: readonly TickProblem[]
}>

type Candidate = Readonly<{ key: IssueKey; runId: string }>

/**
 * Looks at every entry in progress and every claim file: a held claim means that its run is alive, until
 * its time is over. A free one means that its runner left or died; the run is taken over where its journal
 * says it stands, or cleared away when there is nothing to carry on (P§1, P§2). There is no third case.
 */
export async function recover(ports: TickPorts): Promise<RecoveryReport> {
  const adopted: string[] = []
  const problems: TickProblem[] = []
  for (const candidate of candidates(ports)) {
    if (mustEnd(ports)) break
    try {
      if (await recoverRun(ports, candidate)) adopted.push(candidate.runId)
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
async function recoverRun(ports: TickPorts, candidate: Candidate): Promise<boolean> {
  const { key, runId } = candidate
  const before = readJournal(ports, runId)
  if (before.kind === 'read' && !isDue(ports, before.journal)) return false
  const claim = ports.claims.take(key, runId) ?? (await takeFromHung(ports, candidate))
  if (claim === null) return false
  try {
    // Read again under the claim: a runner may have ended between the look and the lock.
    const found = readJournal(ports, runId)
    if (found.kind === 'unreadable') {
      ports.cancelWorker(runId)
      const event = eventOfFault(found.thrown, { runId, now: ports.clock.now(), jitter: 0 })
      await giveUp(ports, key, { ...event, on: 'blocked' })
      claim.release()
      return false
    }
    const { journal } = found
    if (!isDue(ports, journal)) return false
    if (journal !== null && hasWorkLeft(ports, journal))
      return await takeOver(ports, claim, journal)
    // The entry has moved on, perhaps without its worker's end.
    if (journal?.stage === 'launching') ports.cancelWorker(runId)
    await requeue(ports, key, journal, runId)
    claim.release()
    return false
  } finally {
    claim.close()
  }
}

type Found =
  | Readonly<{ kind: 'read'; journal: Journal | null }>
  | Readonly<{ kind: 'unreadable'; thrown: unknown }>

/**
 * A damaged journal is a finding about its run, not a reason to leave the run as it is for ever. One that
 * cannot be read just now, or by this version, is not damaged: that is thrown.
 */
function readJournal({ journals }: TickPorts, runId: string): Found {
  try {
    return { kind: 'read', journal: journals.read(runId) }
  } catch (thrown) {
    if (!isFault(thrown) || thrown.code !== 'state/corrupt') throw thrown
    return { kind: 'unreadable', thrown }
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

/** The claim of a run whose owner has not written in time: stopped, or wedged. null = it is alive. */
async function takeFromHung(ports: TickPorts, { key, runId }: Candidate): Promise<Claim | null> {
  const journal = ports.journals.read(runId)
  if (journal === null || !isOverdue(ports, journal)) return null
  ports.log.warn('run overdue', { issue: formatIssue(key), runId, stage: journal.stage })
  if (!(await ports.endOwner(key, journal.runner))) throw fault('sys/unkillable', { run: runId })
  return ports.claims.take(key, runId)
}

/** A time further ahead than any step takes shows that the clock was set back. */
function isOverdue({ clock, settings }: TickPorts, { ownedUntil }: Journal): boolean {
  if (ownedUntil === null) return false
  const until = plausibleWait(ownedUntil, clock.now(), settings.longestStepMs)
  return until === null || clock.now() > until
}

/**
 * Nothing was begun, so nothing is counted; an entry that another run has is left alone. A runner that said
 * something before it died cannot start, though, nor can one that dies like the one before it: that is trouble
 * which has to back off.
 */
async function requeue(
  ports: TickPorts,
  key: IssueKey,
  journal: Journal | null,
  runId: string,
): Promise<void> {
  const now = ports.clock.now()
  const output = ports.layout.run(runId).runnerOutput
  const isFailure = diedAtOnce(journal) && (hasSpoken(output) || diedAtOnce(before(ports, journal)))
  const event: PhaseEvent = isFailure
    ? eventOfFault(fault('run/runner-failed', { run: runId, output }), { runId, now, jitter: 0 })
    : { on: 'not-started', at: toTimestamp(now), runId }
  const requeued = await applyTo(ports, key, event)
  if (requeued) ports.log.info('run never started', { issue: formatIssue(key), runId })
}

const diedAtOnce = (journal: Journal | null): journal is Journal => journal?.stage === 'starting'

const hasSpoken = (output: string): boolean => (fileStatus(output)?.size ?? 0) > 0

/** The run before this one; null also when nothing can be read of it, which is no reason to hold this one. */
function before({ journals }: TickPorts, { previousRunId }: Journal): Journal | null {
  try {
    return previousRunId === null ? null : journals.read(previousRunId)
  } catch {
    return null // only a hint
  }
}

/** Ends what the dead runner left acting before anybody else acts for the run (P§1). */
async function takeOver(ports: TickPorts, claim: Claim, journal: Journal): Promise<boolean> {
  const { key, runId, stage, runner } = journal
  if (journal.adoptions >= LIMITS.adoptions) {
    await endWithoutProgress(ports, claim, journal)
    return false
  }
  await ports.prepareStart()
  if (runner !== null) ports.endOrphans(runner)
  const now = ports.clock.now()
  const taken: Journal = {
    ...journal,
    epoch: journal.epoch + 1,
    adoptions: journal.adoptions + 1,
    runner: null,
    ownedUntil: toTimestamp(now + LIMITS.startMs),
    intent: journal.intent === null ? null : closedIntent(journal.intent, now),
  }
  ports.journals.write(taken)
  try {
    await ports.startRunner(claim, runId)
  } catch (thrown) {
    // Nobody was started, so the run has had no chance to come further.
    ports.journals.write({ ...taken, adoptions: journal.adoptions })
    throw thrown
  }
  ports.log.info('run adopted', { issue: formatIssue(key), runId, stage })
  return true
}

/** Its sender is proved dead, so it was sent by now or never: the settle time counts from here (P§3). */
function closedIntent(intent: Intent, now: number): Intent {
  return fromTimestamp(intent.deadlineAt) <= now
    ? intent
    : { ...intent, deadlineAt: toTimestamp(now) }
}

/** Its runners die without getting anywhere: a human has to look; the work is kept (design §6). */
async function endWithoutProgress(ports: TickPorts, claim: Claim, journal: Journal): Promise<void> {
  const { runId, stage, adoptions } = journal
  const output = ports.layout.run(runId).runnerOutput
  const stuck = fault('run/no-progress', { run: runId, count: adoptions, stage, output })
  const event = eventOfFault(stuck, { runId, now: ports.clock.now(), jitter: 0 })
  const outcome: PhaseEvent = journal.outcome ?? { ...event, on: 'blocked' }
  if (journal.runner !== null) ports.endOrphans(journal.runner)
  ports.cancelWorker(runId)
  const endedIn = journal.endedIn ?? stage
  const ended: Journal = { ...journal, stage: 'ended', outcome, endedIn }
  ports.journals.write(ended)
  await applyEnd(ports, ended, outcome)
  ports.journals.write({ ...ended, stage: 'settled' })
  claim.release()
}

async function giveUp(ports: TickPorts, key: IssueKey, event: PhaseEvent): Promise<void> {
  if (await applyTo(ports, key, event)) {
    ports.log.warn('run given up', { issue: formatIssue(key), error: event.error?.message })
  }
}

/** false = the event does not count: it was told before, or the entry has moved on. */
async function applyTo(ports: TickPorts, key: IssueKey, event: PhaseEvent): Promise<boolean> {
  return ports.store.changeQueue((queue) => {
    const told = applyToQueue(queue, issueId(key), event, ports.settings.retry)
    return { state: told.queue, value: told.entry !== null }
  })
}
