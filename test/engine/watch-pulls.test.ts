import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import { repositoryOf } from '../../daemon/core/issue-key.ts'
import type { IssueSummary, TimelineEvent } from '../../daemon/core/ports.ts'
import type { TickSettings } from '../../daemon/engine/tick-ports.ts'
import { watchPulls } from '../../daemon/engine/watch-pulls.ts'
import type { RepositoryPoll } from '../../daemon/engine/watched-repositories.ts'
import { publicationOf, pull, RUN, START, timelineEvent } from '../publish/publish-world.ts'
import { sampleFault } from '../support/faults.ts'
import { entryOf, issueOf, KEY, useScene } from './engine-scene.ts'

const scene = useScene()
const UNREACHABLE = fault('github/unreachable', { request: 'r', reason: 'x' })

describe('pull requests that wait for a human', () => {
  const waiting = entryOf(7, { phase: 'awaiting_review', pull: { number: 12, url: 'u' } })
  const poll = (issues: readonly IssueSummary[], isFullPoll = false) =>
    new Map<string, RepositoryPoll>([
      ['acme/widgets', { issues, unchanged: false, isFullPoll, sweptAt: null, malformed: [] }],
    ])
  const ENDED = poll([issueOf(12, { isPullRequest: true, isOpen: false })])

  test.each([
    ['merged', pull(12, { state: 'closed', merged: true }), 'done', null],
    ['closed', pull(12, { state: 'closed' }), 'needs_attention', 'publish/closed-unmerged'],
    ['open', pull(12), 'awaiting_review', null],
    ['gone', null, 'needs_attention', 'publish/pull-gone'],
  ])('%s', async (_, found, phase, code) => {
    await scene().put(waiting)
    scene().github.pullRequest = async () => found
    scene().github.repository = async () => ({
      id: 1,
      name: repositoryOf(KEY),
      defaultBranch: 'main',
      archived: false,
    })
    expect(await watchPulls(scene().ports, ENDED)).toEqual([])
    const entry = scene().entry(7)
    expect([entry?.phase, entry?.lastError?.code ?? null, entry?.blocked?.source ?? null]).toEqual([
      phase,
      code,
      code,
    ])
  })

  test('one passing 404 is not believed, and none while the repository is out of sight', async () => {
    await scene().put(waiting)
    const answers = [null, pull(12)]
    scene().github.pullRequest = async () => answers.shift() ?? null
    expect(await watchPulls(scene().ports, ENDED)).toEqual([])
    expect(scene().entry(7)?.phase).toBe('awaiting_review')
    scene().github.repository = async () => null
    expect(await watchPulls(scene().ports, ENDED)).toMatchObject([
      { thrown: { code: 'github/not-found' } },
    ])
    expect(scene().entry(7)?.phase).toBe('awaiting_review')
  })

  test.each<[string, ReadonlyMap<string, RepositoryPoll>, number]>([
    ['the poll shows its end', ENDED, 1],
    ['the poll was a sweep', poll([], true), 1],
    ['the poll shows it open, however it changed', poll([issueOf(12)]), 0],
    ['the poll shows others', poll([issueOf(7), issueOf(13, { isOpen: false })]), 0],
    ['the poll failed', new Map(), 0],
  ])('it is asked about when %s', async (_, polls, times) => {
    await scene().put(waiting, entryOf(8, { pull: { number: 12, url: 'u' }, phase: 'done' }))
    let asked = 0
    scene().github.pullRequest = async () => {
      asked += 1
      return pull(12)
    }
    await watchPulls(scene().ports, polls)
    expect(asked).toBe(times)
  })

  describe('closed unmerged, when we had closed the issue for it', () => {
    const CLOSED_BY_US = timelineEvent('closed', { createdAt: START })
    const by = (actorId: number, kind: string): TimelineEvent => ({
      ...CLOSED_BY_US,
      kind,
      actorId,
    })
    const arrange = async (
      closed: string,
      timeline: readonly TimelineEvent[],
      isOpen: boolean,
      change: Partial<TickSettings> = {},
    ) => {
      const journal = { markers: { closed }, publication: publicationOf('code') }
      scene().leave({ ...journal, stage: 'settled' }, false)
      await scene().put({ ...waiting, lastRunId: RUN })
      const reopened: string[] = []
      scene().github.pullRequest = async () => pull(12, { state: 'closed' })
      scene().github.issue = async () => ({ ...issueOf(7, { isOpen }), movedTo: null })
      scene().github.timeline = async () => ({ value: timeline, serverTime: START })
      scene().github.reopenIssue = async () => void reopened.push('reopened')
      const problems = await watchPulls(scene().with(change), ENDED)
      return { reopened, problems, phase: scene().entry(7)?.phase }
    }
    const HUMAN = { reopened: [], problems: [], phase: 'needs_attention' }

    test('it is opened again', async () => {
      const wanted = { ...HUMAN, reopened: ['reopened'] }
      expect(await arrange('closed', [CLOSED_BY_US], false)).toEqual(wanted)
    })

    test('in a dry run it waits, as it is, until that is over', async () => {
      const waits = { ...HUMAN, phase: 'awaiting_review' }
      const isClosed = ['closed', [CLOSED_BY_US], false] as const
      expect(await arrange(...isClosed, { dryRun: true })).toEqual(waits)
      expect(await arrange(...isClosed)).toEqual({ ...HUMAN, reopened: ['reopened'] })
      expect(await arrange('closed-already', [CLOSED_BY_US], false, { dryRun: true })).toEqual(
        HUMAN,
      )
    })

    test.each<[string, string, readonly TimelineEvent[], boolean]>([
      ['somebody had closed it before us', 'closed-already', [by(5, 'closed')], false],
      ['it is open again', 'closed', [CLOSED_BY_US, by(5, 'reopened')], true],
      [
        'somebody opened and closed it since',
        'closed',
        [CLOSED_BY_US, by(5, 'reopened'), by(5, 'closed')],
        false,
      ],
    ])('but not when %s', async (_, marker, timeline, isOpen) => {
      expect(await arrange(marker, timeline, isOpen)).toEqual(HUMAN)
    })

    test('what passes is tried again; what does not keeps nobody from being told', async () => {
      scene().github.reopenIssue = async () => {}
      await arrange('closed', [CLOSED_BY_US], false)
      await scene().put({ ...waiting, lastRunId: RUN })
      scene().github.reopenIssue = () => Promise.reject(UNREACHABLE)
      expect(await watchPulls(scene().ports, ENDED)).toMatchObject([{ thrown: UNREACHABLE }])
      expect(scene().entry(7)?.phase).toBe('awaiting_review')
      scene().github.reopenIssue = () =>
        Promise.reject(sampleFault('github/refused', { status: 403 }))
      expect(await watchPulls(scene().ports, ENDED)).toEqual([])
      expect(scene().entry(7)?.phase).toBe('needs_attention')
    })
  })

  test('one that cannot be read is told, and the others are seen', async () => {
    const other = entryOf(8, { phase: 'awaiting_review', pull: { number: 13, url: 'u' } })
    await scene().put(waiting, other)
    scene().github.pullRequest = async (_, number) => {
      if (number === 12) throw UNREACHABLE
      return pull(13, { state: 'closed', merged: true })
    }
    const problems = await watchPulls(scene().ports, poll([], true))
    expect(problems).toEqual([{ where: 'acme/widgets#7', thrown: UNREACHABLE }])
    expect([7, 8].map((number) => scene().entry(number)?.phase)).toEqual([
      'awaiting_review',
      'done',
    ])
  })
})
