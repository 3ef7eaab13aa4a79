import { fault } from '../core/fault.ts'
import type { GarbageItem } from '../core/garbage.ts'
import {
  formatRepository,
  issueId,
  type RepositoryName,
  repositoryId,
  repositoryOf,
} from '../core/issue-key.ts'
import type { Journal } from '../core/journal.ts'
import { LIMITS } from '../core/limits.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import {
  decideRetention,
  isOldEnough,
  type Liveness,
  livenessOf,
  type RetentionDecision,
} from '../core/retention.ts'
import { fromTimestamp, toTimestamp } from '../core/timestamp.ts'
import { mustEnd, type TickPorts, type TickProblem } from './tick-ports.ts'
import type { RepositoryPoll } from './watched-repositories.ts'

// Collecting what is left over (design §5, §7): entries that ended long ago, and once an hour files, trees
// and refs of runs that are over. It decides by what lies there, so whatever dies half-way is done next time.

/** Removals of one sweep; the rest waits for the next one. */
export const MAX_REMOVALS = 200

/** Nothing more is begun after this, so that a tick stays short. */
const MAX_TIME_MS = 20_000

/** What this tick knows of GitHub. */
export type Seen = Readonly<{
  /** Every watched repository; null = it could not be found out. */
  watched: readonly RepositoryName[] | null
  /** Of those whose clone is usable. */
  usable: readonly RepositoryName[]
  /** By `repositoryId`. */
  polls: ReadonlyMap<string, RepositoryPoll>
}>

/**
 * Called by ticks that poll, after everything else. Looks into folders at most once an hour. Never
 * throws: what fails is a problem of its own and is tried again by the next sweep.
 */
export async function collect(ports: TickPorts, seen: Seen): Promise<readonly TickProblem[]> {
  const problems: TickProblem[] = []
  try {
    await dropEntries(ports, seen)
    if (mustEnd(ports) || !isCollectionDue(ports)) return problems
    // Remembered first: a sweep that ends the tick must not end every tick.
    const lastSweptAt = toTimestamp(ports.clock.now())
    await ports.store.changeMeta((meta) => ({ state: { ...meta, lastSweptAt }, value: undefined }))
    await collectAll(ports, seen, problems)
  } catch (thrown) {
    problems.push({ where: 'collecting', thrown })
  }
  return problems
}

/** A clock that was set back must not keep it from ever happening. */
function isCollectionDue({ store, clock }: TickPorts): boolean {
  const { lastSweptAt } = store.readMeta()
  return (
    lastSweptAt === null || Math.abs(clock.now() - fromTimestamp(lastSweptAt)) >= LIMITS.collectMs
  )
}

/** The earlier of our clock and GitHub's, where it said: one that is set wrong must not remove anything. */
function cautiousNow({ clock, github }: TickPorts): number {
  return Math.min(clock.now(), github.serverTime() ?? Number.POSITIVE_INFINITY)
}

/** Entries that ended long ago, and whose issue is seen not to ask for anything any more. */
async function dropEntries(ports: TickPorts, seen: Seen): Promise<void> {
  const now = cautiousNow(ports)
  const old = Object.entries(ports.store.readQueue().entries).filter(([, entry]) =>
    isOldEnough(entry, now, ports.settings.retention),
  )
  const leaving = new Map(old.filter(([, entry]) => isUnlabelled(entry, seen)))
  if (leaving.size === 0) return
  await ports.store.changeQueue((queue) => {
    const kept = Object.entries(queue.entries).filter(
      ([id, entry]) => leaving.get(id)?.updatedAt !== entry.updatedAt,
    )
    return { state: { ...queue, entries: Object.fromEntries(kept) }, value: undefined }
  })
  ports.log.info('ended issues left the queue', { issues: [...leaving.keys()].slice(0, 100) })
}

/**
 * Only a complete list of what is labelled proves that the issue is not: the list of changes leaves out
 * what did not change, and one with unreadable parts may leave out anything.
 */
function isUnlabelled({ key }: QueueEntry, { watched, polls }: Seen): boolean {
  const id = repositoryId(repositoryOf(key))
  const poll = polls.get(id)
  if (poll === undefined) return watched?.every((one) => repositoryId(one) !== id) ?? false
  const isComplete = poll.isFullPoll && poll.malformed.length === 0
  return isComplete && !poll.issues.some(({ number }) => number === key.number)
}

/** What one sweep works with. */
type Collection = Readonly<{
  ports: TickPorts
  now: number
  /** Runs that a claim file or an entry in progress names. */
  claimed: ReadonlySet<string>
  entries: Readonly<Record<string, QueueEntry>>
  /** When a run's tree or journal was changed last, whichever is newer. */
  changes: Map<string, number>
  problems: TickProblem[]
  mayGoOn: () => boolean
  countRemoval: () => void
}>

async function collectAll(ports: TickPorts, seen: Seen, problems: TickProblem[]): Promise<void> {
  const { clock, store, claims, garbage } = ports
  const { entries } = store.readQueue()
  const running = Object.values(entries).flatMap(({ runId, resume }) => [runId, resume])
  const until = clock.now() + MAX_TIME_MS
  let removals = 0
  const work: Collection = {
    ports,
    now: cautiousNow(ports),
    claimed: new Set(
      [...running, ...claims.list().map(({ runId }) => runId)].filter((id) => id !== null),
    ),
    entries,
    changes: new Map(),
    problems,
    mayGoOn: () => !mustEnd(ports) && removals < MAX_REMOVALS && clock.now() < until,
    countRemoval: () => {
      removals += 1
    },
  }
  const [trees, runs] = [garbage.list('tree'), garbage.list('run')]
  for (const { runId, changedAt } of [...trees, ...runs]) {
    if (runId === null) continue
    work.changes.set(runId, Math.max(changedAt, work.changes.get(runId) ?? 0))
  }
  await collectEach(work, trees)
  await collectRuns(work, runs, seen)
  for (const kind of ['temporary', 'archived', 'folder'] as const) {
    if (work.mayGoOn()) await collectEach(work, garbage.list(kind))
  }
}

/** Judges and removes one after the other; one that cannot be removed is in nobody's way. */
async function collectEach(work: Collection, found: readonly GarbageItem[]): Promise<void> {
  for (const item of found) {
    if (!work.mayGoOn()) return
    const evaluated = evaluate(work, item)
    if (evaluated !== null) await remove(work, item, evaluated.verdict)
  }
}

/** The refs of runs go first, a store at a time: later nobody would know whose they are. */
async function collectRuns(
  work: Collection,
  runs: readonly GarbageItem[],
  { usable }: Seen,
): Promise<void> {
  const { ports, problems } = work
  const gone: (Evaluated & Readonly<{ item: GarbageItem }>)[] = []
  for (const item of runs) {
    if (!work.mayGoOn() || gone.length >= MAX_REMOVALS) break
    const evaluated = evaluate(work, item)
    if (evaluated !== null) gone.push({ ...evaluated, item })
  }
  const ofRuns = gone.flatMap(({ journal }) =>
    journal === null ? [] : [repositoryOf(journal.key)],
  )
  const repositories = new Map([...usable, ...ofRuns].map((one) => [repositoryId(one), one]))
  const tidied = new Set<string>()
  for (const [id, repository] of repositories) {
    if (!work.mayGoOn()) break
    const runIds = gone.flatMap(({ journal }) =>
      journal !== null && repositoryId(repositoryOf(journal.key)) === id ? [journal.runId] : [],
    )
    try {
      if (await ports.git.tidyStore(repository, runIds)) tidied.add(id)
    } catch (thrown) {
      problems.push({ where: formatRepository(repository), thrown }) // its runs stay until it works
    }
  }
  for (const { item, verdict, journal } of gone) {
    if (!work.mayGoOn()) return
    const isFree = journal === null || tidied.has(repositoryId(repositoryOf(journal.key)))
    if (isFree) await remove(work, item, verdict)
  }
}

type Evaluated = Readonly<{ verdict: RetentionDecision; journal: Journal | null }>

/** null = it stays. A journal is read only for what is old enough by itself. */
function evaluate(work: Collection, item: GarbageItem): Evaluated | null {
  const { kind, runId, path, changedAt } = item
  const { retention } = work.ports.settings
  const decisionAs = (standing: Liveness, newest: number): RetentionDecision =>
    decideRetention(item, standing, newest, work.now, retention)
  try {
    const first = decisionAs('unknown', changedAt)
    if (first.action === 'refuse') {
      throw fault('sys/io', { operation: 'Removing', path, reason: first.reason })
    }
    if ((kind !== 'run' && kind !== 'tree') || runId === null) {
      return first.action === 'remove' ? { verdict: first, journal: null } : null
    }
    const newest = work.changes.get(runId) ?? changedAt
    if (soonest(item).every((one) => decisionAs(one, newest).action === 'keep')) return null

    const { standing, journal, entry } = readSeen(work, item, runId)
    const isLast = entry?.lastRunId === runId
    const told = isLast ? fromTimestamp(entry.updatedAt) : 0
    const verdict = decisionAs(standing, Math.max(newest, told))
    return verdict.action === 'remove' ? { verdict, journal } : null
  } catch (thrown) {
    work.problems.push({ where: path, thrown }) // left alone
    return null
  }
}

/** The standings in which such a thing goes first. */
function soonest({ kind, holds }: GarbageItem): readonly Liveness[] {
  if (kind === 'tree') return ['over', 'undecided']
  return holds === 'journal' ? ['over'] : ['half-written']
}

/** How a run stands. Faults: state/* when its journal cannot be read, sys/io. */
function readSeen(
  { ports, claimed, entries }: Collection,
  { kind, holds }: GarbageItem,
  runId: string,
): Readonly<{ standing: Liveness; journal: Journal | null; entry: QueueEntry | undefined }> {
  const journal = ports.journals.read(runId)
  const entry = journal === null ? undefined : entries[issueId(journal.key)]
  const isHeld =
    claimed.has(runId) ||
    (journal !== null && ports.claims.isHeld(journal.key)) ||
    ports.garbage.isInUse(runId)
  const hasFiles = kind === 'tree' || holds === 'files'
  return { standing: livenessOf({ runId, isHeld, journal, hasFiles, entry }), journal, entry }
}

async function remove(
  work: Collection,
  item: GarbageItem,
  { reason }: RetentionDecision,
): Promise<void> {
  const { git, layout, garbage, log } = work.ports
  const { kind, path, runId } = item
  try {
    if (kind === 'tree' && runId !== null) {
      await git.removeTree({ path, indexPath: layout.run(runId).index })
    } else {
      await garbage.remove(item)
    }
    work.countRemoval()
    log.info('leftover removed', { kind, path, reason })
  } catch (thrown) {
    work.problems.push({ where: path, thrown }) // tried again by the next sweep
  }
}
