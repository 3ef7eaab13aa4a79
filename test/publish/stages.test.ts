import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import type { PullRequest, TimelineEvent } from '../../daemon/core/ports.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { carriesMarker, renderMarker } from '../../daemon/publish/markers.ts'
import type { PublishPorts } from '../../daemon/publish/run-stages.ts'
import {
  COMMIT,
  comment,
  JOURNAL,
  MARKER,
  pull,
  RUN,
  SETTLE_MS,
  START,
  timelineEvent,
  US,
} from './publish-scene.ts'
import { makeWorld, publish, type World } from './publish-world.ts'

const PUSHED = { committed: COMMIT, pushed: COMMIT }
const COMMENTED = { ...PUSHED, pr_created: '12', commented: '500' }
const ours = (id: number, body: string) => comment(id, { body, authorId: US.id })

/** The journal as it is stored after a try with these markers set. */
async function after(
  world: World,
  start: Partial<Journal>,
  github: Partial<PublishPorts['github']> = {},
) {
  const ports = { ...world.ports, github: { ...world.ports.github, ...github } }
  const tried = await publish(world, start, { ports })
  return { tried, journal: world.ports.journals.read(RUN) }
}
/** An intent that was left open and may be repeated by now. */
const openIntent = (stage: 'commented' | 'label_removed' | 'closed', world: World) => {
  const intent = {
    stage,
    attempt: 1,
    serverTime: toTimestamp(START),
    deadlineAt: toTimestamp(START),
    bootId: 'boot',
    answered: null,
  }
  world.advance(SETTLE_MS)
  return intent
}

describe('which marker is ours', () => {
  test('one of this run, generation and kind, invisible and without a name', () => {
    const marker = { kind: 'pull-request', runId: RUN, generation: 2 } as const
    expect(renderMarker(marker)).toBe(MARKER.pull)
    expect(carriesMarker(`text\n${MARKER.pull}\nmore`, marker)).toBe(true)
    for (const other of [
      { ...marker, generation: 22 },
      { ...marker, kind: 'findings' as const },
      { ...marker, runId: RUN.replace('1', '2') },
    ]) {
      expect(carriesMarker(MARKER.pull, other)).toBe(false)
    }
  })
})

describe('which pull request is ours', () => {
  const other = { body: 'no marker' }
  test.each<[string, readonly PullRequest[], string]>([
    ['ours', [pull(3)], '3'],
    ['ours with an edited text, while open', [pull(3, other)], '3'],
    ['ours, closed or merged', [pull(3, { state: 'closed', merged: true })], '3'],
    ['ours against another base', [pull(3, { baseBranch: 'release' })], '3'],
    ['the marked one of two', [pull(3, other), pull(4)], '4'],
    [
      'a closed one without marker is another run’s',
      [pull(3, { ...other, state: 'closed' })],
      '12',
    ],
    ['a stranger’s, marker and all (C49)', [pull(3, { authorId: 5 })], '12'],
    ['of an account that is gone', [pull(3, { authorId: null })], '12'],
    ['of a fork’s branch of that name', [pull(3, { headRepositoryId: 77 })], '12'],
    ['of a fork that is gone', [pull(3, { headRepositoryId: null })], '12'],
    ['of another branch, which a broken filter lets pass', [pull(3, { headBranch: 'x' })], '12'],
  ])('%s', async (_, pulls, wanted) => {
    const world = makeWorld()
    world.pulls.push(...pulls)
    const { journal } = await after(world, { markers: PUSHED })
    expect(journal?.markers.pr_created).toBe(wanted)
  })

  test('one that exists but is not listed yet stays open until it is (C7, C8)', async () => {
    const world = makeWorld()
    const createPullRequest = async () => ({ kind: 'exists' }) as const
    const { tried, journal } = await after(world, { markers: PUSHED }, { createPullRequest })
    expect(tried).toMatchObject({ code: 'github/bad-answer' })
    expect(journal?.intent).toMatchObject({ stage: 'pr_created' })
    world.pulls.push(pull(9))
    expect((await after(world, {})).journal?.markers.pr_created).toBe('9')
  })

  test('one that appears while it is made is taken at once', async () => {
    const world = makeWorld()
    const createPullRequest = async () => {
      world.pulls.push(pull(9))
      return { kind: 'exists' } as const
    }
    const { journal } = await after(world, { markers: PUSHED }, { createPullRequest })
    expect(journal?.markers.pr_created).toBe('9')
  })

  test('no commits between: certainly nothing was made', async () => {
    const createPullRequest = async () => ({ kind: 'no-commits' }) as const
    const { tried, journal } = await after(makeWorld(), { markers: PUSHED }, { createPullRequest })
    expect(tried).toMatchObject({ code: 'github/refused' })
    expect(journal?.intent).toBe(null)
  })
})

describe('which comment is ours', () => {
  const start = { markers: { ...PUSHED, pr_created: '12' } }
  test.each([
    ['our own with the marker', [ours(8, `a\n${MARKER.completion}`)], '8'],
    ['the older of two', [ours(9, MARKER.completion), ours(8, MARKER.completion)], '8'],
    ['a stranger’s with the marker (C49)', [comment(8, { body: MARKER.completion })], '500'],
    ['of nobody', [comment(8, { body: MARKER.completion, authorId: null })], '500'],
    ['our own of another kind', [ours(8, MARKER.findings)], '500'],
    ['of another generation', [ours(8, MARKER.completion.replace(':2', ':1'))], '500'],
  ])('%s', async (_, comments, wanted) => {
    const world = makeWorld()
    world.comments.push(...comments)
    expect((await after(world, start)).journal?.markers.commented).toBe(wanted)
  })

  test('a list shorter than the issue says proves nothing, and nothing is written', async () => {
    const world = makeWorld()
    world.comments.push(comment(1), comment(2))
    const comments = async () => ({ value: [comment(1)], serverTime: START })
    const { tried } = await after(world, start, { comments })
    expect(tried).toMatchObject({ code: 'github/bad-answer' })
    expect(world.done).toEqual([])
  })

  test('after an intent only comments since then are asked for, less a minute', async () => {
    const world = makeWorld()
    const asked: (number | undefined)[] = []
    const comments: PublishPorts['github']['comments'] = async (key, since) => {
      asked.push(since)
      return world.ports.github.comments(key, since)
    }
    await after(world, { ...start, intent: openIntent('commented', world) }, { comments })
    expect(asked).toEqual([START - 60_000, START - 60_000])
    expect(world.done).toContain('createComment')
  })
})

describe('who removed the label or closed the issue', () => {
  const ago = (ms: number): Partial<TimelineEvent> => ({ createdAt: START - ms })
  const otherLabel = { label: 'bug' }

  test.each<[string, readonly TimelineEvent[], string]>([
    ['we did, and a human set it again: that stands', [timelineEvent('unlabeled')], 'removed'],
    ['GitHub’s second began before ours', [timelineEvent('unlabeled', ago(1000))], 'removed'],
    ['we did long before the intent', [timelineEvent('unlabeled', ago(5000))], 'performed'],
    ['somebody else did', [timelineEvent('unlabeled', { actorId: 5 })], 'performed'],
    ['it was another label', [timelineEvent('unlabeled', otherLabel)], 'performed'],
    ['it was set by us', [{ ...timelineEvent('unlabeled'), kind: 'labeled' }], 'performed'],
    ['nobody', [], 'performed'],
  ])('label: %s', async (_, events, wanted) => {
    const world = makeWorld()
    world.timeline.push(...events)
    const intent = openIntent('label_removed', world)
    const { journal } = await after(world, { markers: COMMENTED, intent })
    expect(journal?.markers.label_removed).toBe('removed')
    expect(world.done.includes('removeLabel')).toBe(wanted === 'performed')
    expect(world.issue.labels.includes(JOURNAL.label)).toBe(wanted !== 'performed')
  })

  test.each<[string, readonly TimelineEvent[], boolean]>([
    ['we did, and a human reopened it: that stands', [timelineEvent('closed')], true],
    ['we did long before the intent', [timelineEvent('closed', ago(5000))], false],
    ['somebody else did before', [timelineEvent('closed', { actorId: 5 })], false],
  ])('issue: %s', async (_, events, staysOpen) => {
    const world = makeWorld()
    world.timeline.push(...events)
    const markers = { ...COMMENTED, label_removed: 'removed' }
    const { journal } = await after(world, { markers, intent: openIntent('closed', world) })
    expect(journal?.markers.closed).toBe('closed')
    expect(world.issue.isOpen).toBe(staysOpen)
  })

  test('without an intent the history is not asked for', async () => {
    const world = makeWorld()
    world.timeline.push(timelineEvent('unlabeled'), timelineEvent('closed'))
    const timeline = () => Promise.reject(fault('internal/unexpected', { reason: 'asked' }))
    const { tried } = await after(world, { markers: COMMENTED }, { timeline })
    expect(tried.kind).toBe('published')
    expect(world.done).toEqual(['removeLabel', 'close'])
  })

  test('a label in another spelling is the same label', async () => {
    const world = makeWorld()
    world.issue.labels = ['🤖 auto-fix']
    await after(world, { markers: COMMENTED })
    expect(world.done).toContain('removeLabel')
  })
})
