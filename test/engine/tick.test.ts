import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import type { Meta, RateLimit } from '../../daemon/core/meta.ts'
import type { IssueSummary } from '../../daemon/core/ports.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { tick } from '../../daemon/engine/tick.ts'
import type { TickPorts } from '../../daemon/engine/tick-ports.ts'
import { START } from '../publish/publish-scene.ts'
import {
  AT,
  entryOf,
  issueOf,
  pollOf,
  REPOSITORY,
  running,
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
          throw fault('github/rate-limited', { kind: 'primary', until: LIMITED.wait.until })
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
    const limited = fault('github/rate-limited', { kind: 'primary', until: AT })
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
