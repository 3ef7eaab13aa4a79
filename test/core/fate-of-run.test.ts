import { describe, expect, test } from '@jest/globals'
import { fateOfRun, giveUpRun } from '../../daemon/core/fate-of-run.ts'
import { type Journal, RUN_STAGES, type RunStage } from '../../daemon/core/journal.ts'
import { newEntry, PHASES, type Phase, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { QUEUE_VERBS, type QueueVerb } from '../../daemon/core/queue-verbs.ts'
import { resumableStage } from '../../daemon/core/resume.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'

const NOW = Date.parse('2026-01-01T12:00:00.000Z')

const AT = toTimestamp(NOW)

const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'

const KEY = { owner: 'Octo', name: 'App', number: 7 }

const VERBS = Object.keys(QUEUE_VERBS) as readonly QueueVerb[]

const ALL_STAGES = Object.keys(RUN_STAGES) as readonly RunStage[]

const entryIn = (phase: Phase, changed: Partial<QueueEntry> = {}): QueueEntry => ({
  ...newEntry(KEY, 'code', AT, AT),
  phase,
  lastRunId: RUN,
  runId: PHASES[phase].slot ? RUN : null,
  ...changed,
})

const journalAt = (stage: RunStage, changed: Partial<Journal> = {}): Journal => ({
  runId: RUN,
  key: KEY,
  ticket: 'code',
  generation: 1,
  previousRunId: null,
  attempt: 1,
  dryRun: false,
  build: '/build',
  createdAt: AT,
  epoch: 4,
  adoptions: 0,
  stage,
  branch: 'automation/issue-7-x',
  base: null,
  remote: null,
  treePath: '/tree',
  indexPath: '/index',
  label: 'auto',
  labeledEventId: null,
  runner: null,
  ownedUntil: null,
  publication: null,
  markers: {},
  intent: null,
  notBefore: AT,
  trouble: null,
  outcome: null,
  endedIn: null,
  ...changed,
})

/** A run that a forbidden word stopped after its worker had succeeded. */
const STOPPED = journalAt('settled', {
  endedIn: 'finished',
  outcome: { on: 'blocked', at: AT, runId: RUN },
})

const HALF_PUBLISHED: Journal = {
  ...STOPPED,
  endedIn: 'publishing',
  markers: { committed: 'a'.repeat(40), pushed: 'a'.repeat(40) },
  publication: {
    plan: 'code',
    commitMessage: 'fix: x',
    commitDateSeconds: 1,
    pullTitle: 'fix: x',
    pullBody: 'x',
    comment: 'x',
    actorId: 1,
    actorLogin: 'bot',
    treeOid: 'b'.repeat(40),
    changedFiles: 1,
  },
}

describe('what becomes of the last run?', () => {
  const KEPT = { isRetained: true, isForced: false }
  const needy = entryIn('needs_attention')

  test('a reset lets paid work go on at the stage in which it was stopped', () => {
    expect(fateOfRun('reset', needy, STOPPED, KEPT)).toEqual({
      kind: 'resumed',
      runId: RUN,
      stage: 'finished',
    })
    expect(fateOfRun('reset', needy, HALF_PUBLISHED, KEPT)).toMatchObject({
      kind: 'resumed',
      stage: 'publishing',
    })
  })

  test('a forced reset and a reprocess drop it, and say so', () => {
    const dropped = { kind: 'dropped', runId: RUN, stage: 'finished' }
    expect(fateOfRun('reset', needy, STOPPED, { ...KEPT, isForced: true })).toEqual(dropped)
    expect(fateOfRun('reprocess', needy, STOPPED, KEPT)).toEqual(dropped)
  })

  test('work that is not there any more does not go on; what is frozen does not need it', () => {
    const lost = { isRetained: false, isForced: false }
    expect(fateOfRun('reset', needy, STOPPED, lost)).toEqual({ kind: 'nothing' })
    expect(fateOfRun('reset', needy, HALF_PUBLISHED, lost)).toMatchObject({ kind: 'resumed' })
  })

  test('a run of an earlier generation never goes on for a later one', () => {
    const later = entryIn('skipped', { generation: 2 })
    expect(fateOfRun('reset', later, STOPPED, KEPT)).toEqual({ kind: 'nothing' })
  })

  test('without a journal there is nothing, whatever the command', () => {
    for (const verb of VERBS) {
      expect(fateOfRun(verb, needy, null, KEPT)).toEqual({ kind: 'nothing' })
    }
  })

  test('a run that has begun and is not decided is dropped; one that has not, or is, tells nothing', () => {
    const dropped = ALL_STAGES.filter(
      (stage) =>
        fateOfRun('reprocess', entryIn('in_progress'), journalAt(stage), KEPT).kind !== 'nothing',
    )
    expect(dropped).toEqual(['owned', 'launching', 'finished', 'publishing'])
  })
})

describe('how is a run given up?', () => {
  const UNDECIDED: readonly RunStage[] = ['owned', 'launching', 'finished', 'publishing']

  test.each(['starting', 'settled'] as const)('a journal at %s is left as it is', (stage) => {
    const before = journalAt(stage)
    expect(giveUpRun(before)).toBe(before)
  })

  test.each(UNDECIDED)('one at %s says so, and neither it nor its owner goes on', (stage) => {
    const before = journalAt(stage)
    const after = giveUpRun(before)
    const changed = { stage: 'settled', epoch: 5, notBefore: null, endedIn: stage }
    expect(after).toEqual({ ...before, ...changed })
    expect(resumableStage(after)).toBeNull()
  })

  test('what ended a run before stays known, and what may go on still may', () => {
    const after = giveUpRun({ ...STOPPED, stage: 'ended' })
    expect(after).toMatchObject({
      stage: 'settled',
      endedIn: 'finished',
      outcome: STOPPED.outcome,
    })
    expect(resumableStage(after)).toBe('finished')
    expect(giveUpRun(journalAt('ended')).endedIn).toBeNull()
  })
})
