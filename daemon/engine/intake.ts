import { decideIntake, type IntakeDecision } from '../core/decide-intake.ts'
import type { Diagnostic } from '../core/diagnostics.ts'
import { asFault } from '../core/fault.ts'
import { formatRepository, issueId, type RepositoryName, repositoryId } from '../core/issue-key.ts'
import { LIMITS } from '../core/limits.ts'
import type { RepositoryState } from '../core/meta.ts'
import type { IssueSummary } from '../core/ports.ts'
import { type QueueEntry, type QueueState, withEntry } from '../core/queue-state.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { applyToQueue, type PhaseEvent } from '../core/transitions.ts'
import { eachBounded } from '../sys/bounded-waits.ts'
import { isRateLimit, recordError } from './outcome-of-fault.ts'
import { newestLabeling } from './prepare-run.ts'
import { mustEnd, type TickPorts, type TickProblem } from './tick-ports.ts'
import { pollRepository, type RepositoryPoll } from './watched-repositories.ts'

export type IntakeReport = Readonly<{
  polled: number
  /** Every repository answered from the cache. */
  unchanged: boolean
  enqueued: number
  /** By `repositoryId`. */
  polls: ReadonlyMap<string, RepositoryPoll>
  /** To be stored once the queue is durable, which it is when this is returned. */
  states: Readonly<Record<string, RepositoryState>>
  diagnostics: readonly Diagnostic[]
  problems: readonly TickProblem[]
}>

type Polled =
  | Readonly<{ repository: RepositoryName; poll: RepositoryPoll }>
  | Readonly<{ repository: RepositoryName; thrown: unknown }>

/**
 * Polls the usable repositories, a bounded number at a time, and brings the queue up to what they say.
 * A repository that fails is a problem of its own and stops no other (R§12 W5).
 */
export async function intake(
  ports: TickPorts,
  repositories: readonly RepositoryName[],
  forced: boolean,
): Promise<IntakeReport> {
  const { clock, store, settings, github } = ports
  const states = store.readMeta().repositories
  const polled = await eachBounded(
    repositories,
    LIMITS.httpConcurrency,
    async (repository): Promise<Polled> => {
      const state = states[repositoryId(repository)]
      try {
        if (mustEnd(ports)) return { repository, thrown: asFault('no time was left for it') }
        const now = clock.now()
        const poll = await pollRepository(github, settings, repository, state, now, forced)
        return { repository, poll }
      } catch (thrown) {
        return { repository, thrown } // reported for this repository; the others go on
      }
    },
  )
  const good = polled.filter((one) => 'poll' in one)
  const problems = polled.flatMap((one) =>
    'thrown' in one ? [{ where: formatRepository(one.repository), thrown: one.thrown }] : [],
  )
  const { enqueued, diagnostics } = await applyPolls(ports, good, problems)
  return {
    polled: good.length,
    unchanged: good.length > 0 && good.every(({ poll }) => poll.unchanged),
    enqueued,
    polls: new Map(good.map(({ repository, poll }) => [repositoryId(repository), poll])),
    states: statesOf(polled, states, clock.now()),
    diagnostics,
    problems,
  }
}

type Seen = Readonly<{ repository: RepositoryName; issue: IssueSummary }>

async function applyPolls(
  ports: TickPorts,
  polled: readonly Readonly<{ repository: RepositoryName; poll: RepositoryPoll }>[],
  problems: TickProblem[],
): Promise<{ enqueued: number; diagnostics: readonly Diagnostic[] }> {
  const seen: readonly Seen[] = polled.flatMap(({ repository, poll }) =>
    poll.issues.map((issue) => ({ repository, issue })),
  )
  const labelings = await readLabelings(ports, seen, problems)
  const now = ports.clock.now()
  // One for all of a repository: of the same code and place only the first would be kept (R§3.6).
  const diagnostics: Diagnostic[] = polled.flatMap(({ repository, poll }) =>
    poll.malformed.length === 0
      ? []
      : [
          {
            at: toTimestamp(now),
            code: 'malformed-issue',
            issue: formatRepository(repository),
            message: poll.malformed.join('; '),
          },
        ],
  )
  const enqueued = await ports.store.changeQueue((queue) => {
    let state = queue
    let count = 0
    for (const one of seen) {
      const id = idOf(one)
      const entry = state.entries[id]
      const decision = decide(ports, one, entry, now)
      if (decision.kind === 'note') diagnostics.push(decision.diagnostic)
      if (decision.kind === 'enqueue') count += 1
      state = applyDecision(ports, state, one, decision, labelings.get(id))
    }
    return { state, value: count }
  })
  return { enqueued, diagnostics }
}

function applyDecision(
  ports: TickPorts,
  queue: QueueState,
  seen: Seen,
  decision: IntakeDecision,
  labeling: PhaseEvent | 'old' | undefined,
): QueueState {
  const id = idOf(seen)
  if (decision.kind === 'enqueue') return withEntry(queue, id, decision.entry)
  const entry = queue.entries[id]
  if (entry === undefined) return queue
  const { retry } = ports.settings
  if (decision.kind === 'event') return applyToQueue(queue, id, decision.event, retry).queue
  if (decision.kind !== 'look-up-labeling' || labeling === undefined) return queue
  if (labeling !== 'old') return applyToQueue(queue, id, labeling, retry).queue
  // Looked at and not new: remembered, so that it is not looked up again until it changes.
  return withEntry(queue, id, { ...entry, seenUpdatedAt: toTimestamp(seen.issue.updatedAt) })
}

/** For issues that carry a trigger label after an end: whether it was set anew (design §6). */
async function readLabelings(
  ports: TickPorts,
  seen: readonly Seen[],
  problems: TickProblem[],
): Promise<ReadonlyMap<string, PhaseEvent | 'old'>> {
  const { entries } = ports.store.readQueue()
  const now = ports.clock.now()
  const candidates = seen.flatMap((one) => {
    const entry = entries[idOf(one)]
    const decision = decide(ports, one, entry, now)
    if (entry === undefined || decision.kind !== 'look-up-labeling') return []
    return [{ ...one, entry, label: decision.label, ticket: decision.ticket }]
  })
  const found = new Map<string, PhaseEvent | 'old'>()
  await eachBounded(candidates, LIMITS.httpConcurrency, async ({ issue, entry, label, ticket }) => {
    try {
      const { value, serverTime } = await ports.github.timeline(entry.key)
      const newest = newestLabeling(value, label)
      const setAt = value.find(({ id }) => id === newest)?.createdAt ?? 0
      const isNew = newest !== null && isAfterEnd(entry, newest, setAt)
      // The timeline may be behind the issue: only what has settled counts as looked at.
      if (!isNew && serverTime - issue.updatedAt < LIMITS.pollOverlapMs) return
      found.set(
        issueId(entry.key),
        isNew
          ? {
              on: 'relabelled',
              at: toTimestamp(now),
              labeledEventId: newest,
              seenUpdatedAt: toTimestamp(issue.updatedAt),
              ticket,
            }
          : 'old',
      )
    } catch (thrown) {
      problems.push({ where: issueId(entry.key), thrown })
    }
  })
  return found
}

/** Event ids only grow; an entry that ended before any id was known goes by GitHub's time. */
function isAfterEnd(entry: QueueEntry, newest: number, setAt: number): boolean {
  if (entry.labeledEventId !== null) return newest > entry.labeledEventId
  return entry.seenUpdatedAt === null || setAt > fromTimestamp(entry.seenUpdatedAt)
}

function decide(
  ports: TickPorts,
  { repository, issue }: Seen,
  entry: QueueEntry | undefined,
  now: number,
): IntakeDecision {
  const { triggers, dryRun } = ports.settings
  return decideIntake(repository, issue, entry, { triggers, dryRun, now })
}

function idOf({ repository, issue }: Seen): string {
  return issueId({ ...repository, number: issue.number })
}

function statesOf(
  polled: readonly Polled[],
  before: Readonly<Record<string, RepositoryState>>,
  now: number,
): Readonly<Record<string, RepositoryState>> {
  const states = polled.map((one): [string, RepositoryState] => {
    const id = repositoryId(one.repository)
    if ('poll' in one) return [id, { sweptAt: one.poll.sweptAt, problem: null }]
    const { sweptAt, problem } = before[id] ?? { sweptAt: null, problem: null }
    return [
      id,
      { sweptAt, problem: isRateLimit(one.thrown) ? problem : recordError(one.thrown, now) },
    ]
  })
  return Object.fromEntries(states)
}
