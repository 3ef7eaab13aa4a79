import { existsSync } from 'node:fs'
import { type IssueKey, issueId, repositoryId, repositoryOf } from '../../daemon/core/issue-key.ts'
import { PHASES, type QueueEntry, type QueueState } from '../../daemon/core/queue-state.ts'
import { nextStepOf } from '../../daemon/core/resume.ts'
import { TRANSITIONS } from '../../daemon/core/transitions.ts'
import { US } from './model-github.ts'
import { type ModelWorld, SETTLE_MS, short } from './model-world.ts'

// What must hold after each step of a history, whatever happened, and what must be true in the end
// (design §1, §6; P§3). The numbers in the messages:
//   I1 once per run: branch, pull request, comment, label, closing      I5 nothing is pushed for the withdrawn
//   I2 nothing is written for a run that was lost                       I6 what people reverse stays reversed
//   I3 workers per budget; a success is paid for once                   I7 no request while a limit is stored
//   I4 the table of transitions, the slots, one claim per issue         I8 each labelling is answered once

export type Tally = {
  histories: number
  steps: number
  ticks: number
  crashes: number
  faults: number
  workers: number
  phases: Record<string, number>
}

export const newTally = (): Tally => ({
  histories: 0,
  steps: 0,
  ticks: 0,
  crashes: 0,
  faults: 0,
  workers: 0,
  phases: {},
})

/** Whether nothing is left to do by itself. */
export function isQuiet(world: ModelWorld): boolean {
  const { entries } = world.store.readQueue()
  const isBusy = Object.values(entries).some(
    (entry) =>
      entry.phase === 'queued' ||
      entry.phase === 'in_progress' ||
      (entry.phase === 'previewed' && !world.options.dryRun && isWished(world, entry.key)) ||
      waitsInVain(world, entry),
  )
  return !isBusy && world.living().length === 0 && world.locks.list().length === 0
}

/**
 * Whether its pull request is not open any more. A failed look at it is repeated by the next sweep; a dry run may
 * not open the issue again, so that is left to the first tick after it.
 */
function waitsInVain({ github, options }: ModelWorld, { phase, key, pull }: QueueEntry): boolean {
  if (phase !== 'awaiting_review') return false
  const id = issueId({ ...key, number: pull?.number ?? 0 })
  const found = github.pulls.find((one) => issueId(one.key) === id)
  if (found?.versions.at(-1)?.state === 'open') return false
  const issue = github.issues().find((one) => issueId(one.key) === issueId(key))
  return !options.dryRun || issue?.versions.at(-1)?.isOpen !== false
}

/** Open, with exactly one trigger label, and where it was. */
function isWished({ github }: ModelWorld, key: IssueKey): boolean {
  return github.issues().some((issue) => {
    const state = github.stateOf(key)
    return (
      issueId(issue.key) === issueId(key) && state?.isOpen === true && state.labels.length === 1
    )
  })
}

export type Rules = ReturnType<typeof watchRules>

/** What must hold, and what has to be remembered to see it. */
export function watchRules(world: ModelWorld, tally: Tally) {
  const { violate, store, journals, github, setup } = world
  /** What the present budget of an issue has been spent on. */
  const budgets = new Map<string, { starts: number; finished: string | null }>()
  const answered = new Map<string, number>()
  /** When each issue last came to an end, by GitHub's clock. */
  const endedAt = new Map<string, number>()
  const abandoned = new Set<string>()
  const budgetOf = (id: string) => {
    const known = budgets.get(id) ?? { starts: 0, finished: null }
    budgets.set(id, known)
    return known
  }

  world.watchers.onWrite = ({ kind, runId, epoch }, caller, name) => {
    if (kind === 'tick' || runId === null) {
      if (name !== 'reopen') violate(`a tick wrote ${name}`)
      return
    }
    const journal = journals.read(runId)
    if (journal?.epoch !== epoch) violate(`I2: ${name} by a runner that lost ${short(runId)}`)
    if (journal?.dryRun) violate(`a dry run wrote ${name}`)
    if (name === 'push' && journal && caller.wanted.get(issueId(journal.key)) !== true) {
      violate(`I5: ${short(runId)} pushed although its issue was seen to be withdrawn`)
    }
  }
  world.watchers.onWorker = (runId) => {
    const key = journals.read(runId)?.key
    if (key === undefined) return violate('a worker without a journal')
    const budget = budgetOf(issueId(key))
    budget.starts += 1
    if (budget.starts > setup.maxAttempts + 3)
      violate(`I3: worker start ${budget.starts} of ${issueId(key)}`)
    if (budget.finished !== null) {
      violate(`I3: ${issueId(key)} was paid for again after ${short(budget.finished)} had finished`)
    }
  }
  world.watchers.onJournal = ({ stage, runId, key, dryRun }) => {
    if (stage === 'finished' && !dryRun && !abandoned.has(runId))
      budgetOf(issueId(key)).finished = runId
  }
  world.watchers.onQueue = (before, after) => {
    for (const [id, entry] of Object.entries(after.entries)) {
      const old = before.entries[id]
      if (old !== undefined && old !== entry) judgeChange(id, old, entry)
    }
    for (const [id, old] of Object.entries(before.entries)) {
      if (after.entries[id] === undefined) judgeLeaving(id, old)
    }
    judgeSlots(after)
  }

  const judgeChange = (id: string, old: QueueEntry, entry: QueueEntry): void => {
    if (old.phase !== entry.phase) {
      world.note(`    ${id}: ${old.phase} → ${entry.phase}`)
      tally.phases[entry.phase] = (tally.phases[entry.phase] ?? 0) + 1
      const isKnown = TRANSITIONS.some(
        ({ from, to }) => (from as readonly string[]).includes(old.phase) && to === entry.phase,
      )
      if (!isKnown) violate(`I4: ${id} went from ${old.phase} to ${entry.phase}`)
      if (PHASES[entry.phase].terminal) endedAt.set(id, world.time.server)
    }
    if (entry.attempts > setup.maxAttempts) violate(`I3: attempt ${entry.attempts} of ${id}`)
    if (old.phase === 'previewed' && entry.phase === 'queued') budgets.delete(id)
    if (entry.generation === old.generation) return
    budgets.delete(id)
    if (old.lastError?.code === 'issue/ambiguous') return
    // Each labelling is answered once; presence alone never restarts (design §6).
    const labeling = entry.labeledEventId ?? 0
    if (labeling <= (answered.get(id) ?? 0)) violate(`I8: ${id} began anew for an old labelling`)
    answered.set(id, labeling)
  }
  /** What ended long ago leaves; a wish after that begins with nothing. */
  const judgeLeaving = (id: string, { phase }: QueueEntry): void => {
    if (!PHASES[phase].terminal) violate(`I4: ${id} left the queue while ${phase}`)
    budgets.delete(id)
    endedAt.delete(id)
  }
  const judgeSlots = ({ entries }: QueueState): void => {
    const atWork = Object.values(entries).filter(({ phase }) => PHASES[phase].slot)
    if (atWork.length > setup.parallelism) violate(`I4: ${atWork.length} at work`)
    const byRepository = countBy(atWork, ({ key }) => repositoryId(repositoryOf(key)))
    for (const [id, count] of byRepository) {
      const isTooMany = setup.perRepository > 0 && count > setup.perRepository
      if (isTooMany) violate(`I4: ${count} at work in ${id}`)
    }
  }

  const perRun = (name: string): ReadonlyMap<string, number> =>
    countBy(
      github.done.filter((one) => one.name === name),
      ({ runId }) => runId ?? 'a tick',
    )
  const judgeEffects = (): void => {
    for (const name of ['push', 'pull', 'unlabel', 'close'] as const) {
      for (const [runId, count] of perRun(name)) {
        if (count > 1) violate(`I1/I6: ${short(runId)} did ${name} ${count} times`)
      }
    }
    // A second comment is made only when the first one showed later than the settle time allows.
    const mayBeTwice = setup.lagMs.comments > SETTLE_MS || world.time.wasSetAhead
    for (const [marker, count] of countBy(github.made, (marker) => marker)) {
      if (count > 1 && !mayBeTwice) violate(`I1: ${marker} was written ${count} times`)
    }
    for (const issue of github.issues()) {
      const ours = github.openPullsOf(issue).filter(({ author }) => author.id === US.id)
      if (setup.existingPull === 'skip' && ours.length > 1) {
        violate(`I1: ${ours.length} open pull requests of ours for ${issueId(issue.key)}`)
      }
    }
    const holders = countBy(world.holders(), (id) => id)
    for (const [id, count] of holders) if (count > 1) violate(`I4: ${count} live claims of ${id}`)
  }

  const check = (): void => {
    judgeEffects()
    if (world.violations.length === 0) return
    throw new Error(`${world.violations.join('\n')}\n${world.trail.slice(-250).join('\n')}`)
  }
  const checkEnd = (): void => {
    const { entries } = store.readQueue()
    const told = `${JSON.stringify(world.locks.list())} ${world.living().length} living`
    if (!isQuiet(world)) violate(`it never became quiet: ${phasesOf(entries)}; ${told}`)
    for (const [marker, count] of countBy(github.markers(), (marker) => marker)) {
      if (count > 1 && !isHalted(marker)) violate(`I1: ${count} comments ${marker}`)
    }
    for (const runId of journals.list()) judgeJournal(runId)
    for (const entry of Object.values(entries)) judgeEntry(entry)
    for (const issue of github.issues()) {
      if (isWished(world, issue.key) && entries[issueId(issue.key)] === undefined) {
        violate(`${issueId(issue.key)} was never noticed`)
      }
    }
    check()
  }
  /**
   * A run that was ended between the two looks takes the younger comment away once it is reset; one that the
   * operator gave up then is looked after by nobody.
   */
  const isHalted = (marker: string): boolean => {
    const [, runId = ''] = /automation-run:(\S+)/.exec(marker) ?? []
    const journal = journals.read(runId)
    const isStopped = journal?.outcome?.on === 'blocked' || abandoned.has(runId)
    return isStopped && journal?.intent?.stage === 'commented'
  }
  const judgeJournal = (runId: string): void => {
    const journal = journals.read(runId)
    if (journal === null || journal.stage === 'starting' || abandoned.has(runId)) return
    const isClean = CLEAN.has(journal.outcome?.on ?? '') && journal.stage === 'settled'
    if (isClean && existsSync(journal.treePath)) violate(`the tree of ${short(runId)} is left`)
    if (existsSync(world.layout.run(runId).heartbeat)) violate(`${short(runId)} still beats`)
    // Its end is told; only its claim, which was taken from under it, would have led anybody back to it.
    const isTold = journal.stage === 'ended' && world.unlinked.has(runId)
    if (journal.stage !== 'settled' && !isTold)
      violate(`${short(runId)} was left at ${journal.stage}`)
    if (journal.outcome?.on === 'published') {
      for (const name of ['push', 'pull', 'comment'] as const) {
        if (!perRun(name).has(runId)) violate(`${short(runId)} is published without a ${name}`)
      }
    }
    if (journal.outcome?.on === 'findings-posted' && !perRun('comment').has(runId)) {
      violate(`${short(runId)} posted no findings`)
    }
  }
  const judgeEntry = (entry: QueueEntry): void => {
    const needsHuman = entry.phase === 'needs_attention' || entry.phase === 'failed'
    if (needsHuman && nextStepOf(entry) === '') violate(`${issueId(entry.key)} names no next step`)
    judgeWish(entry)
    if (waitsInVain(world, entry)) {
      violate(`${issueId(entry.key)} waits for a pull request that is not open`)
    }
  }

  /** A labelling after an end is a new wish, and an issue that is gone is nobody's. */
  const judgeWish = ({ key, phase, lastError, lastRunId }: QueueEntry): void => {
    const id = issueId(key)
    const issue = github.issues().find((one) => issueId(one.key) === id)
    if (issue === undefined) {
      const wasBegun = lastRunId !== null && world.workers.has(lastRunId)
      const isAround = !wasBegun && lastError?.code === 'github/not-found'
      if (isAround) violate(`${id} is gone, and ${phase} as if that could pass`)
      return
    }
    if (!PHASES[phase].terminal || !isWished(world, key)) return
    const set = issue.timeline.findLast(({ event }) => event.kind === 'labeled')?.event
    if ((set?.createdAt ?? 0) > (endedAt.get(id) ?? 0)) violate(`the new wish of ${id} is lost`)
  }

  return {
    check,
    checkEnd,
    /** The operator begins a new budget; what had finished is paid for again only when it does not go on. */
    byOperator: (id: string, isResumed: boolean, runId: string | null): void => {
      const { finished } = budgetOf(id)
      budgets.set(id, { starts: 0, finished: isResumed ? finished : null })
      if (!isResumed && runId !== null) abandoned.add(runId)
    },
  }
}

/** Ends after which nobody needs the tree (design §7). */
const CLEAN: ReadonlySet<string> = new Set(['published', 'findings-posted', 'rate-limited'])

function phasesOf(entries: QueueState['entries']): string {
  return Object.entries(entries)
    .map(([id, { phase, lastError }]) => `${id} ${phase} ${lastError?.code ?? ''}`)
    .join(', ')
}

function countBy<T>(items: readonly T[], name: (item: T) => string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(name(item), (counts.get(name(item)) ?? 0) + 1)
  return counts
}
