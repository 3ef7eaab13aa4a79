import { fault } from '../core/fault.ts'
import { issueId, repositoryId, repositoryOf } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { PullRequest } from '../core/ports.ts'
import type { QueueEntry } from '../core/queue.ts'
import { toTimestamp } from '../core/timestamp.ts'
import { applyToQueue, type PhaseEvent } from '../core/transitions.ts'
import { eachBounded } from './each-bounded.ts'
import { recordError } from './outcome-of-fault.ts'
import type { RepositoryPoll } from './poll-repository.ts'
import type { TickPorts, TickProblem } from './tick-ports.ts'

/**
 * Pull requests that wait for a human: merged → done, closed unmerged → a human decides (design §6).
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
    return poll.isSweep || isShownEnded ? [{ entry, number }] : []
  })
  const problems: TickProblem[] = []
  const events = new Map<string, PhaseEvent>()
  await eachBounded(awaiting, LIMITS.httpConcurrency, async ({ entry, number }) => {
    try {
      const pull = await ports.github.pullRequest(repositoryOf(entry.key), number)
      const event = pull === null ? null : eventOf(entry, pull, ports.clock.now())
      if (event !== null) events.set(issueId(entry.key), event)
    } catch (thrown) {
      problems.push({ where: issueId(entry.key), thrown }) // looked at again by the next sweep
    }
  })
  if (events.size > 0) await apply(ports, events)
  return problems
}

function eventOf(entry: QueueEntry, pull: PullRequest, now: number): PhaseEvent | null {
  const at = toTimestamp(now)
  if (pull.merged) return { on: 'merged', at }
  if (pull.state === 'open') return null
  const closed = fault('publish/closed-unmerged', {
    number: pull.number,
    issue: issueId(entry.key),
  })
  return {
    on: 'closed-unmerged',
    at,
    error: recordError(closed, now),
    blocked: { source: closed.code, hint: closed.next },
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
