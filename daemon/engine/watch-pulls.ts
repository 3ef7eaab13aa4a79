import { asFault, describeFault, fault } from '../core/fault.ts'
import { policyOf } from '../core/fault-catalogue.ts'
import { formatIssue, issueId, repositoryId, repositoryOf } from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { PullRequest } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue, type PhaseEvent } from '../core/transitions.ts'
import { eachBounded } from '../sys/bounded-waits.ts'
import { findIssue, probeTwice } from './check-eligible.ts'
import { recordError } from './outcome-of-fault.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'
import type { RepositoryPoll } from './watched-repositories.ts'

/**
 * Pull requests that wait for a human: merged → done, closed unmerged or gone → a human decides, and what
 * we closed for it is opened again (design §6).
 * Asked about only when the poll shows that it is no longer open, or when the poll was a sweep, which
 * shows no pull requests.
 */
export async function watchPulls(
  ports: TickPorts,
  polls: ReadonlyMap<string, RepositoryPoll>,
): Promise<readonly TickProblem[]> {
  const { entries } = ports.store.readQueue()
  const awaiting = Object.values(entries).flatMap((entry) => {
    if (entry.phase !== 'awaiting_review' || entry.pull === null) return []
    const number = entry.pull.number
    const poll = polls.get(repositoryId(repositoryOf(entry.key)))
    if (poll === undefined) return []
    const isShownEnded = poll.issues.some((issue) => issue.number === number && !issue.isOpen)
    return poll.isFullPoll || isShownEnded ? [{ entry, number }] : []
  })
  const problems: TickProblem[] = []
  const events = new Map<string, PhaseEvent>()
  await eachBounded(awaiting, LIMITS.httpConcurrency, async ({ entry, number }) => {
    try {
      const { github } = ports
      const repository = repositoryOf(entry.key)
      const pull = await probeTwice(github, repository, () =>
        github.pullRequest(repository, number),
      )
      const event = eventOf(number, pull, ports.clock.now())
      if (event === null) return
      if (event.on === 'closed-unmerged' && !(await reopenOwnClosing(ports, entry))) return
      events.set(issueId(entry.key), event)
    } catch (thrown) {
      problems.push({ where: issueId(entry.key), thrown }) // looked at again by the next sweep
    }
  })
  if (events.size > 0) await apply(ports, events)
  return problems
}

function eventOf(number: number, pull: PullRequest | null, now: number): PhaseEvent | null {
  const at = toTimestamp(now)
  if (pull?.merged) return { on: 'merged', at }
  if (pull?.state === 'open') return null
  const on = pull === null ? 'pull-gone' : 'closed-unmerged'
  const ended = fault(`publish/${on}`, { number })
  return {
    on,
    at,
    error: recordError(ended, now),
    blocked: { source: ended.code, hint: ended.next },
  }
}

/** A journal that cannot be read must not keep the entry from getting its human. */
function readRun({ journals, log }: TickPorts, { lastRunId: runId }: QueueEntry): Journal | null {
  try {
    return runId === null ? null : journals.read(runId)
  } catch (thrown) {
    log.warn('journal not readable', { runId, error: describeFault(thrown) })
    return null
  }
}

/**
 * Opens the issue again if its last closing was ours: the change it was closed for was not accepted. What a
 * human did since stands. Nothing to do when it died half-way: the issue is open then (design §9).
 * false = it would have to be opened, and a dry run does not write: the entry stays until that is over.
 * Faults: github/*; one that will not pass is only logged, so that the entry still gets its human.
 */
async function reopenOwnClosing(ports: TickPorts, entry: QueueEntry): Promise<boolean> {
  const run = readRun(ports, entry)
  if (run?.markers.closed !== 'closed') return true
  try {
    const issue = await findIssue(ports.github, entry.key)
    if (issue === null || issue.isOpen || issue.movedTo !== null) return true
    const { value } = await ports.github.timeline(entry.key)
    const last = value.filter(({ kind }) => kind === 'closed' || kind === 'reopened').at(-1)
    if (last?.kind !== 'closed' || last.actorId !== run.publication?.actorId) return true
    const { dryRun } = ports.settings
    if (!dryRun) await ports.github.reopenIssue(entry.key)
    const what = dryRun ? 'dry run: the issue would be reopened' : 'issue reopened'
    ports.log.info(what, { issue: formatIssue(entry.key) })
    return !dryRun
  } catch (thrown) {
    const met = asFault(thrown)
    if (!policyOf(met.code).isRefusal) throw met
    const { code, message } = met
    ports.log.warn('issue not reopened', { issue: formatIssue(entry.key), code, message })
    return true
  }
}

async function apply(ports: TickPorts, events: ReadonlyMap<string, PhaseEvent>): Promise<void> {
  await ports.store.changeQueue((queue) => {
    let state = queue
    for (const [id, event] of events) {
      const ended = applyToQueue(state, id, event, ports.settings.retry)
      state = ended.queue
      if (ended.entry !== null) {
        ports.log.info('pull request ended', { issue: id, event: event.on })
      }
    }
    return { state, value: undefined }
  })
}
