import { statSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { RepositoryMemory } from '../../daemon/core/meta.ts'
import type { IssueSummary, TimelineEvent } from '../../daemon/core/ports.ts'
import type { QueueEntry } from '../../daemon/core/queue.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { type IntakeReport, intake } from '../../daemon/engine/intake.ts'
import { pollRepository } from '../../daemon/engine/poll-repository.ts'
import { START, timelineEvent } from '../publish/publish-scene.ts'
import {
  AT,
  entryOf,
  issueOf,
  pollOf,
  REPOSITORY,
  SETTINGS,
  TRIGGERS,
  useScene,
} from './engine-scene.ts'

const scene = useScene()
const GEARS = { owner: 'Acme', name: 'Gears' }
const UNREACHABLE = fault('github/unreachable', { request: 'r', reason: 'x' })

describe('how a repository is polled', () => {
  const memory = (sweptAt: number | null): RepositoryMemory => ({
    sweptAt: sweptAt === null ? null : toTimestamp(sweptAt),
    problem: null,
  })
  /** What was asked, and what came of it. */
  async function poll(known: RepositoryMemory | undefined, forced = false) {
    const asked: string[] = []
    const answers: Readonly<Record<string, ReturnType<typeof pollOf>>> = {
      [TRIGGERS.code]: pollOf([issueOf(1), issueOf(2)], {
        serverTime: START + 2000,
        malformed: ['a'],
        unchanged: true,
      }),
      [TRIGGERS.investigation]: pollOf([issueOf(2), issueOf(3)], {
        serverTime: START + 1000,
        malformed: ['b'],
      }),
    }
    scene().github.pollLabel = async (_, label) => {
      asked.push(label)
      return answers[label] ?? pollOf([])
    }
    scene().github.pollChanges = async (_, since) => {
      asked.push(`since ${since - START}`)
      return pollOf([issueOf(9)], { unchanged: true })
    }
    const { github } = scene().ports
    const found = await pollRepository(github, SETTINGS, REPOSITORY, known, START, forced)
    return { asked, found }
  }
  const SWEEP = [TRIGGERS.code, TRIGGERS.investigation]

  test.each<[string, RepositoryMemory | undefined, boolean, readonly string[]]>([
    ['never before: by both labels', undefined, false, SWEEP],
    ['never completely', memory(null), false, SWEEP],
    ['an hour ago', memory(START - LIMITS.sweepMs), false, SWEEP],
    ['an hour ahead, for a clock was set back', memory(START + LIMITS.sweepMs), false, SWEEP],
    ['on demand', memory(START), true, SWEEP],
    ['lately: only changes since, with overlap', memory(START - 60_000), false, ['since -180000']],
    ['lately by a clock that is ahead', memory(START + 60_000), false, ['since -60000']],
  ])('%s', async (_, known, forced, wanted) => {
    expect((await poll(known, forced)).asked).toEqual(wanted)
  })

  test('a sweep is each issue once, unchanged when all is, dated by the earliest answer', async () => {
    const { found } = await poll(undefined)
    expect(found.issues.map(({ number }) => number)).toEqual([1, 2, 3])
    expect(found).toMatchObject({
      isSweep: true,
      unchanged: false,
      sweptAt: toTimestamp(START + 1000),
      malformed: ['a', 'b'],
    })
  })

  test('changes leave the time of the sweep as it is, so that the address stays the same', async () => {
    const known = memory(START - 60_000)
    expect((await poll(known)).found).toMatchObject({
      isSweep: false,
      unchanged: true,
      sweptAt: known.sweptAt,
    })
  })
})

/** Polls as changes of these issues, or fails, by repository. */
const answer = (issues: readonly IssueSummary[] | Error, gears: readonly IssueSummary[] = []) => {
  scene().github.pollLabel = async ({ name }, label) => {
    if (name === 'Gears') return pollOf(label === TRIGGERS.code ? gears : [])
    if (issues instanceof Error) throw issues
    return pollOf(label === TRIGGERS.code ? issues : [])
  }
}
const take = (repositories = [REPOSITORY]): Promise<IntakeReport> =>
  intake(scene().ports, repositories, true)
const queueWrites = (): number =>
  scene().crossed.filter((name) => name === 'store.changeQueue').length

describe('what a poll does to the queue', () => {
  test('new issues are queued, and everything is told', async () => {
    answer([issueOf(1), issueOf(2, { labels: ['bug'] }), issueOf(3)])
    const report = await take()
    expect(report).toMatchObject({ polled: 1, unchanged: false, enqueued: 2, problems: [] })
    expect([1, 2, 3].map((number) => scene().entry(number)?.phase)).toEqual([
      'queued',
      undefined,
      'queued',
    ])
    expect(report.memories).toEqual({
      'acme/widgets': { sweptAt: toTimestamp(START), problem: null },
    })
    expect([...report.polls.keys()]).toEqual(['acme/widgets'])
  })

  test('a second time nothing is new, and the file is not touched', async () => {
    answer([issueOf(1)])
    await take()
    const before = statSync(scene().layout.queue)
    scene().advance(60_000)
    expect((await take()).enqueued).toBe(0)
    const after = statSync(scene().layout.queue)
    expect([after.ino, after.mtimeMs]).toEqual([before.ino, before.mtimeMs])
    expect(queueWrites()).toBe(2)
  })

  test('a failing repository is a problem of its own; its sweep is not forgotten', async () => {
    await scene().ports.store.changeMeta((meta) => ({
      state: {
        ...meta,
        repositories: { 'acme/widgets': { sweptAt: toTimestamp(1), problem: null } },
      },
      value: null,
    }))
    answer(UNREACHABLE, [issueOf(5)])
    const report = await take([REPOSITORY, GEARS])
    expect(report).toMatchObject({ polled: 1, enqueued: 1 })
    expect(report.problems).toEqual([{ where: 'Acme/Widgets', thrown: UNREACHABLE }])
    expect(report.memories).toMatchObject({
      'acme/widgets': { sweptAt: toTimestamp(1), problem: { code: 'github/unreachable' } },
      'acme/gears': { problem: null },
    })
  })

  test('after the deadline no repository is asked', async () => {
    answer([issueOf(1)])
    scene().advance(100_000)
    expect(await take()).toMatchObject({ polled: 0, problems: [{ where: 'Acme/Widgets' }] })
  })

  test('what cannot be worked on is noted, malformed issues of a repository together', async () => {
    const both = issueOf(1, { labels: [TRIGGERS.code, TRIGGERS.investigation] })
    scene().github.pollLabel = async (_, label) =>
      pollOf([both, issueOf(2, { isPullRequest: true })], { malformed: [`odd ${label}`] })
    const { diagnostics, enqueued } = await take()
    expect(enqueued).toBe(0)
    expect(diagnostics.map(({ code, issue }) => [code, issue])).toEqual([
      ['malformed-issue', 'Acme/Widgets'],
      ['ambiguous-labels', 'Acme/Widgets#1'],
      ['pull-request-labelled', 'Acme/Widgets#2'],
    ])
  })

  test('a queued issue that lost its label, or was closed, is skipped', async () => {
    await scene().put(entryOf(1), entryOf(2), entryOf(3))
    answer([issueOf(1, { labels: [] }), issueOf(2, { isOpen: false }), issueOf(3)])
    await take()
    const phases = [1, 2, 3].map((number) => scene().entry(number)?.phase)
    expect(phases).toEqual(['skipped', 'skipped', 'queued'])
  })
})

describe('a label after an end', () => {
  const labeled = (id: number, ms: number, change: Partial<TimelineEvent> = {}): TimelineEvent => ({
    ...timelineEvent('unlabeled', { id, createdAt: START + ms, label: 'Auto-Fix' }),
    kind: 'labeled',
    ...change,
  })
  /** The entry after a poll in which the issue had changed and had this history. */
  async function relabel(
    ended: Partial<QueueEntry>,
    events: readonly TimelineEvent[],
    serverTime = START + 9000 + LIMITS.pollOverlapMs,
  ) {
    await scene().put(entryOf(7, { phase: 'failed', attempts: 3, ...ended }))
    let asked = 0
    scene().github.timeline = async () => {
      asked += 1
      return { value: events, serverTime }
    }
    answer([issueOf(7, { updatedAt: START + 9000 })])
    const report = await take()
    return { entry: scene().entry(7), asked: () => asked, report }
  }
  const NEW = { phase: 'queued', attempts: 0, generation: 2, labeledEventId: 20 }
  const OLD = { phase: 'failed', attempts: 3, generation: 1 }

  test.each<[string, Partial<QueueEntry>, readonly TimelineEvent[], object]>([
    [
      'set anew after the run looked',
      { labeledEventId: 10 },
      [labeled(10, 0), labeled(20, 1)],
      NEW,
    ],
    ['the one the run answered', { labeledEventId: 20 }, [labeled(10, 0), labeled(20, 1)], OLD],
    ['of another name', { labeledEventId: 10 }, [labeled(20, 1, { label: 'bug' })], OLD],
    ['removed, not set', { labeledEventId: 10 }, [labeled(20, 1, { kind: 'unlabeled' })], OLD],
    ['without any history', { labeledEventId: 10 }, [], OLD],
    ['never looked at, set after the issue was last seen', {}, [labeled(20, 1)], NEW],
    ['never looked at, set when it was last seen', {}, [labeled(20, 0)], OLD],
    ['never seen at all', { seenUpdatedAt: null }, [labeled(20, -9000)], NEW],
  ])('%s', async (_, ended, events, wanted) => {
    const { entry } = await relabel(ended, events)
    expect(entry).toMatchObject({ ...wanted, seenUpdatedAt: toTimestamp(START + 9000) })
  })

  test('a history that may still be behind the issue is looked up again', async () => {
    const early = START + 9000 + LIMITS.pollOverlapMs - 1
    const { asked } = await relabel({ labeledEventId: 20 }, [labeled(20, 1)], early)
    expect(scene().entry(7)?.seenUpdatedAt).toBe(AT)
    await take()
    expect(asked()).toBe(2)
  })

  test('is looked up once, until the issue changes again', async () => {
    const { asked } = await relabel({ labeledEventId: 20 }, [labeled(20, 1)])
    await take()
    expect(asked()).toBe(1)
    answer([issueOf(7, { updatedAt: START + 10_000 })])
    await take()
    expect(asked()).toBe(2)
  })

  test('asks for the kind of ticket that is set now', async () => {
    const event = labeled(20, 1, { label: TRIGGERS.investigation })
    scene().github.pollLabel = async () =>
      pollOf([issueOf(7, { labels: [TRIGGERS.investigation], updatedAt: START + 9000 })])
    scene().github.timeline = async () => ({ value: [event], serverTime: START })
    await scene().put(entryOf(7, { phase: 'done', labeledEventId: 10 }))
    await take()
    expect(scene().entry(7)).toMatchObject({ phase: 'queued', ticket: 'investigation' })
  })

  test('a history that cannot be read is told, and looked up again', async () => {
    answer([issueOf(7, { updatedAt: START + 9000 }), issueOf(8)])
    await scene().put(entryOf(7, { phase: 'failed', labeledEventId: 10 }))
    scene().github.timeline = () => Promise.reject(UNREACHABLE)
    const report = await take()
    expect(report).toMatchObject({ enqueued: 1, problems: [{ where: 'acme/widgets#7' }] })
    scene().github.timeline = async () => ({ value: [labeled(20, 1)], serverTime: START })
    await take()
    expect(scene().entry(7)).toMatchObject(NEW)
  })
})
