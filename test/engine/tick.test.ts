import { readFileSync, statSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { printAttention } from '../../daemon/app/print-attention.ts'
import { fault } from '../../daemon/core/fault.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { Meta, RateLimit, RepositoryState } from '../../daemon/core/meta.ts'
import type { IssueSummary, TimelineEvent } from '../../daemon/core/ports.ts'
import type { QueueEntry } from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { type IntakeReport, intake } from '../../daemon/engine/intake.ts'
import { tick } from '../../daemon/engine/tick.ts'
import type { TickPorts } from '../../daemon/engine/tick-ports.ts'
import { pollRepository } from '../../daemon/engine/watched-repositories.ts'
import { START, timelineEvent } from '../publish/publish-world.ts'
import { sampleFault } from '../support/faults.ts'
import {
  AT,
  entryOf,
  issueOf,
  pollOf,
  REPOSITORY,
  running,
  SETTINGS,
  TRIGGERS,
  useScene,
} from './engine-scene.ts'

const scene = useScene()
const UNREACHABLE = fault('github/unreachable', { request: 'r', reason: 'x' })

const MISSING = fault('clone/missing', { repo: 'r', path: 'p', url: 'u', target: 't' })

const meta = (): Meta => scene().ports.store.readMeta()
const setMeta = (change: Partial<Meta>): Promise<unknown> =>
  scene().ports.store.changeMeta((known) => ({ state: { ...known, ...change }, value: null }))
const polls = (issues: readonly IssueSummary[], unchanged = false): void => {
  scene().github.pollLabel = async (_, label) =>
    pollOf(label === TRIGGERS.code ? issues : [], { unchanged })
  scene().github.pollChanges = async () => pollOf(issues, { unchanged })
}
const go = (change: Partial<TickPorts> = {}, forced = false) =>
  tick({ ...scene().ports, ...change }, forced)
const POLLED = { lastPollStarted: AT }
const LIMITED = { wait: { kind: 'primary', until: toTimestamp(START + 60_000) } } as const

describe('how a tick ends', () => {
  test.each<[string, () => unknown, string, number]>([
    ['a new issue', () => polls([issueOf(7)]), 'processed', 1],
    ['nothing', () => polls([]), 'idle_empty', 0],
    ['nothing has changed', () => polls([], true), 'idle304', 0],
    ['polled just now', () => setMeta(POLLED), 'skipped_cadence', 0],
    [
      'polled just now, but there is something to start',
      async () => {
        await setMeta(POLLED)
        await scene().put(entryOf(7))
      },
      'processed',
      1,
    ],
    [
      'a run to take over',
      async () => {
        polls([], true)
        await scene().put(entryOf(7, running()))
        scene().leave({ stage: 'owned' }, false)
      },
      'processed',
      1,
    ],
    [
      'a limit, and something to start',
      async () => {
        await setMeta(LIMITED)
        await scene().put(entryOf(7))
      },
      'rate_limited',
      0,
    ],
    [
      'a limit that the poll ran into, and something to start',
      async () => {
        await scene().put(entryOf(7))
        scene().github.pollLabel = async () => {
          await setMeta(LIMITED)
          throw sampleFault('github/rate-limited', { until: LIMITED.wait.until })
        }
      },
      'rate_limited',
      0,
    ],
    [
      'every poll failed',
      () => {
        scene().github.pollLabel = () => Promise.reject(UNREACHABLE)
      },
      'failed',
      0,
    ],
    [
      'no clone can be used',
      () => {
        scene().git.inspectClone = () => Promise.reject(MISSING)
      },
      'idle_empty',
      0,
    ],
  ])('%s', async (_, arrange, outcome, runs) => {
    await arrange()
    const report = await go()
    expect([report.outcome, report.runIds.length]).toEqual([outcome, runs])
    if (outcome !== 'skipped_cadence') expect(meta().lastOutcome).toBe(outcome)
  })

  test('on demand the cadence does not count, a limit does', async () => {
    polls([])
    await setMeta(POLLED)
    expect((await go({}, true)).outcome).toBe('idle_empty')
    await setMeta(LIMITED)
    expect((await go({}, true)).outcome).toBe('rate_limited')
  })
})

describe('what a tick asks for', () => {
  test('a repository without a usable clone is not polled, and its issues are not started', async () => {
    await scene().put(entryOf(7))
    scene().git.inspectClone = () => Promise.reject(MISSING)
    const report = await go()
    expect(report).toMatchObject({ runIds: [], problems: [{ where: 'Acme/Widgets' }] })
    expect(meta().repositories).toEqual({
      'acme/widgets': {
        sweptAt: null,
        problem: expect.objectContaining({ code: 'clone/missing' }),
      },
    })
  })

  test('a start of a poll counts for the cadence, though the tick dies in it', async () => {
    scene().github.pollLabel = () => Promise.reject(UNREACHABLE)
    scene().fail('store.changeQueue before', () => fault('internal/unexpected', { reason: 'dead' }))
    await expect(go()).rejects.toThrow('dead')
    expect(meta()).toMatchObject({ lastPollStarted: AT, lastOutcome: null })
  })

  test('a tick that skips changes no file', async () => {
    await setMeta(POLLED)
    const before = readFileSync(scene().layout.meta, 'utf8')
    await go()
    expect(readFileSync(scene().layout.meta, 'utf8')).toBe(before)
  })

  test('what was taken over in this tick holds its slot when others are started', async () => {
    polls([issueOf(8)])
    await scene().put(entryOf(7, running()))
    const { runId } = scene().leave({ stage: 'owned' }, false)
    expect((await go()).runIds).toEqual([runId])
    expect(scene().entry(8)?.phase).toBe('queued')
  })
})

describe('what a tick leaves to read', () => {
  test('an error is dated, and gone after a tick without one', async () => {
    scene().github.pollLabel = () => Promise.reject(UNREACHABLE)
    scene().advance(1000)
    await go()
    const error = { code: 'github/unreachable', at: toTimestamp(START + 1000) }
    expect(meta()).toMatchObject({
      lastError: error,
      repositories: { 'acme/widgets': { sweptAt: null, problem: error } },
    })
    polls([])
    await go({}, true)
    expect(meta()).toMatchObject({
      lastError: null,
      repositories: { 'acme/widgets': { sweptAt: AT, problem: null } },
    })
  })

  test('a rate limit is shown as such and not as an error', async () => {
    const limited = sampleFault('github/rate-limited', { until: AT })
    scene().github.pollLabel = () => Promise.reject(limited)
    expect((await go()).problems).toHaveLength(1)
    expect(meta().lastError).toBe(null)
  })

  test('what GitHub said of itself; what it did not say stays', async () => {
    polls([])
    const rate: RateLimit = { limit: 5000, remaining: 7, resetAt: AT, observedAt: AT }
    await go({ lastAnswer: () => ({ status: 304, rate }) })
    await go({ lastAnswer: () => ({ status: null, rate: null }) }, true)
    expect(meta()).toMatchObject({ lastHttpStatus: 304, rateLimit: rate })
  })

  test('only watched repositories are remembered; one that is not polled keeps what is known', async () => {
    const known = { sweptAt: AT, problem: null }
    await setMeta({ ...POLLED, repositories: { 'acme/widgets': known, 'gone/away': known } })
    await scene().put(entryOf(7))
    await go()
    expect(meta().repositories).toEqual({ 'acme/widgets': known })
  })

  test('notes are kept once', async () => {
    polls([issueOf(7, { labels: [TRIGGERS.code, TRIGGERS.investigation] })])
    await go()
    await go({}, true)
    expect(meta().diagnostics.map(({ code }) => code)).toEqual(['ambiguous-labels'])
  })

  test('every problem is logged with its place and code', async () => {
    scene().git.inspectClone = () => Promise.reject(MISSING)
    await go()
    const problem = scene().logged.find(({ event }) => event === 'tick met a problem')
    expect(problem?.fields).toMatchObject({ where: 'Acme/Widgets', code: 'clone/missing' })
  })
})

describe('discovery', () => {
  const discovering = (): Partial<TickPorts> => ({
    settings: { ...scene().ports.settings, discover: true },
  })
  const inspected: string[] = []
  const inspect = (): void => {
    inspected.length = 0
    scene().git.inspectClone = async ({ owner, name }) => {
      inspected.push(`${owner}/${name}`)
      return { path: '/c', originUrl: 'o', shallowOrPartial: false }
    }
  }

  test('what the token may reach is watched too, the configured spelling first', async () => {
    inspect()
    polls([])
    scene().github.accessibleRepositories = async () => [
      { ...REPOSITORY, owner: 'ACME' },
      { ...REPOSITORY, name: 'Gears' },
    ]
    await go(discovering())
    expect([...inspected].sort()).toEqual(['Acme/Gears', 'Acme/Widgets'])
    expect(Object.keys(meta().repositories).sort()).toEqual(['acme/gears', 'acme/widgets'])
  })

  test.each(['not asked, for no poll is due', 'asked without success'])('%s', async (how) => {
    inspect()
    polls([])
    const known = { sweptAt: AT, problem: null }
    const isDue = how.startsWith('asked')
    await setMeta({ repositories: { 'acme/gears': known }, ...(isDue ? {} : POLLED) })
    let asked = 0
    scene().github.accessibleRepositories = async () => {
      asked += 1
      throw UNREACHABLE
    }
    const { problems } = await go(discovering())
    expect([...inspected].sort()).toEqual(['Acme/Widgets', 'acme/gears'])
    expect([asked, problems.map(({ where }) => where)]).toEqual(
      isDue ? [1, ['discovery']] : [0, []],
    )
  })
})

const GEARS = { owner: 'Acme', name: 'Gears' }

describe('how a repository is polled', () => {
  const memory = (sweptAt: number | null): RepositoryState => ({
    sweptAt: sweptAt === null ? null : toTimestamp(sweptAt),
    problem: null,
  })
  /** What was asked, and what came of it. */
  async function poll(known: RepositoryState | undefined, forced = false) {
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

  test.each<[string, RepositoryState | undefined, boolean, readonly string[]]>([
    ['never before: by both labels', undefined, false, SWEEP],
    ['never completely', memory(null), false, SWEEP],
    ['an hour ago', memory(START - LIMITS.fullPollMs), false, SWEEP],
    ['an hour ahead, for a clock was set back', memory(START + LIMITS.fullPollMs), false, SWEEP],
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
      isFullPoll: true,
      unchanged: false,
      sweptAt: toTimestamp(START + 1000),
      malformed: ['a', 'b'],
    })
  })

  test('changes leave the time of the sweep as it is, so that the address stays the same', async () => {
    const known = memory(START - 60_000)
    expect((await poll(known)).found).toMatchObject({
      isFullPoll: false,
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
    expect(report.states).toEqual({
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
    expect(report.states).toMatchObject({
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

test('an issue that needs attention is told first and noted then, so that no death hides it', async () => {
  await scene().put(entryOf(7, { phase: 'needs_attention' }), entryOf(8))
  const { layout } = scene()
  const { store } = scene().ports
  const told: string[] = []
  const tell = (store: TickPorts['store']) =>
    printAttention(store, layout, (line) => void told.push(line))
  const dying = { ...store, changeMeta: () => Promise.reject(UNREACHABLE) }
  await expect(tell(dying)).rejects.toBe(UNREACHABLE)
  expect(told).toEqual([expect.stringMatching(/^Acme\/Widgets#7 needs attention: /)])
  expect(await tell(store)).toEqual([told[0]])
  expect(await tell(store)).toEqual([])
  expect(told).toHaveLength(2)
})
