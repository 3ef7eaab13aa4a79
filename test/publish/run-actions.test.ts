import { describe, expect, test } from '@jest/globals'
import { fault } from '../../daemon/core/fault.ts'
import type { Journal, PublishAction, PublishPlan } from '../../daemon/core/journal.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import type { PublishPorts } from '../../daemon/publish/run-actions.ts'
import type { PublishPolicy } from '../../daemon/publish/validate-tree.ts'
import { detailsOf } from '../support/faults.ts'
import {
  COMMIT,
  comment,
  JOURNAL,
  MARKER,
  makeWorld,
  PUSH_MS,
  publish,
  pull,
  RUN,
  SETTLE_MS,
  START,
  US,
  type World,
  type WriteName,
} from './publish-world.ts'

const ALL: readonly WriteName[] = ['push', 'createPull', 'createComment', 'removeLabel', 'close']
const WRITES: readonly Readonly<{ stage: PublishAction; write: WriteName; marker: string }>[] = [
  { stage: 'pushed', write: 'push', marker: COMMIT },
  { stage: 'pr_created', write: 'createPull', marker: '12' },
  { stage: 'commented', write: 'createComment', marker: '500' },
  { stage: 'label_removed', write: 'removeLabel', marker: 'removed' },
  { stage: 'closed', write: 'close', marker: 'closed' },
]
const OPEN_ISSUE = {
  title: 't',
  body: '',
  author: 'ada',
  labels: ['bug'],
  isOpen: true,
  isPullRequest: false,
  mergedAt: null,
  updatedAt: START,
  commentCount: 0,
  movedTo: null,
}
const stored = (world: World): Journal | null => world.ports.journals.read(RUN)
const deadlineOf = (stage: PublishAction): number => (stage === 'pushed' ? PUSH_MS : 30_000)

describe('a publication without trouble', () => {
  test('every write has a durable intent before it and its marker right after it', async () => {
    const world = makeWorld()
    const { kind } = await publish(world)
    expect([kind, world.done]).toEqual(['published', ALL])
    for (const { stage, write } of WRITES) {
      const at = world.asked.indexOf(write)
      expect(world.asked[at - 1]).toMatch(new RegExp(`^journal \\[.*\\] ${stage}!1$`))
      expect(world.asked[at + 1]).toMatch(new RegExp(`^journal \\[.*${stage}\\]$`))
    }
    expect(stored(world)).toMatchObject({
      markers: {
        committed: COMMIT,
        pushed: COMMIT,
        pr_created: '12',
        commented: '500',
        label_removed: 'removed',
        closed: 'closed',
      },
      intent: null,
    })
  })

  test('an intent tells GitHub’s time, its deadline by our clock, and the boot', async () => {
    const world = makeWorld()
    world.fail('push', 'lost')
    await publish(world)
    expect(stored(world)?.intent).toEqual({
      stage: 'pushed',
      attempt: 1,
      serverTime: toTimestamp(START + 1000),
      deadlineAt: toTimestamp(START + PUSH_MS),
      bootId: 'boot',
      answered: null,
    })
  })

  test('what arrives is what was frozen; the comment names the pull request first', async () => {
    const world = makeWorld()
    await publish(world)
    expect(world.requests).toEqual([
      {
        treeOid: 't'.repeat(40),
        parentOid: 'b'.repeat(40),
        message: 'fix: x',
        author: { name: 'Caduceus Daemon', email: 'caduceus@daemon.local' },
        dateSeconds: START / 1000,
        keepAs: `refs/runs/${RUN}`,
      },
    ])
    expect([...world.branches]).toEqual([[JOURNAL.branch, COMMIT]])
    expect(world.pulls).toEqual([pull(12, { body: `Closes #7\n\n${MARKER.pull}` })])
    expect(world.comments.map(({ body }) => body)).toEqual([
      `Pull request #12 is ready for review.\n\nDone.\n\n${MARKER.completion}`,
    ])
    expect(world.issue).toEqual({ labels: ['bug'], isOpen: false })
  })

  test('a second time nothing is asked and nothing is written', async () => {
    const world = makeWorld()
    await publish(world)
    world.asked.length = 0
    expect(await publish(world)).toMatchObject({ kind: 'published' })
    expect(world.asked).toEqual([])
  })

  test.each<[PublishPlan, Partial<PublishPolicy>, readonly WriteName[]]>([
    ['code', { closeIssue: 'merge' }, ['push', 'createPull', 'createComment', 'removeLabel']],
    ['code', { closeIssue: 'never' }, ['push', 'createPull', 'createComment', 'removeLabel']],
    ['code', { removeLabel: false }, ['push', 'createPull', 'createComment', 'close']],
    ['findings', {}, ['createComment', 'removeLabel', 'close']],
    ['findings', { closeIssue: 'merge' }, ['createComment', 'removeLabel', 'close']],
    ['findings', { closeIssue: 'never', removeLabel: false }, ['createComment']],
    ['no-changes', {}, ['createComment']],
  ])('the plan %s under %j', async (plan, policy, wanted) => {
    const world = makeWorld()
    await publish(world, {}, { plan, policy })
    expect(world.done).toEqual(wanted)
    if (plan !== 'code') expect(world.comments[0]?.body).toBe(`Done.\n\n${MARKER[plan]}`)
  })

  test('a stage that succeeded ends what trouble there was', async () => {
    const world = makeWorld()
    const since = toTimestamp(START)
    world.fail('createPull', 'refused')
    await publish(world, { trouble: { count: 3, since }, notBefore: since })
    expect(stored(world)).toMatchObject({ trouble: null, notBefore: null })
  })
})

describe('what is there already is recorded and not done again', () => {
  test.each<[WriteName, (world: World) => void, Partial<Journal['markers']>]>([
    ['push', ({ branches }) => branches.set(JOURNAL.branch, COMMIT), { pushed: COMMIT }],
    ['createPull', ({ pulls }) => pulls.push(pull(3)), { pr_created: '3' }],
    [
      'createComment',
      ({ comments }) => comments.push(comment(8, { body: MARKER.completion, authorId: US.id })),
      { commented: '8' },
    ],
    ['removeLabel', ({ issue }) => issue.labels.pop(), { label_removed: 'absent' }],
    ['close', ({ issue }) => (issue.isOpen = false), { closed: 'closed-already' }],
  ])('%s', async (write, arrange, markers) => {
    const world = makeWorld()
    arrange(world)
    expect(await publish(world)).toMatchObject({ kind: 'published', journal: { markers } })
    expect(world.done).toEqual(ALL.filter((name) => name !== write))
  })
})

describe.each(WRITES)('when the write of $stage goes wrong', ({ stage, write, marker }) => {
  const intentOf = (world: World): string =>
    `${stored(world)?.intent?.stage ?? 'none'} ${stored(world)?.intent?.attempt ?? 0}`

  test('certainly without effect: the intent is cleared, and it is done at the next try', async () => {
    const world = makeWorld()
    world.fail(write, 'refused')
    expect(await publish(world)).toMatchObject({ kind: 'fault', code: 'github/refused' })
    expect([intentOf(world), world.done.includes(write)]).toEqual(['none 0', false])
    await publish(world)
    expect(world.done).toEqual(ALL)
  })

  test('done, but the answer was lost: found at once and recorded', async () => {
    const world = makeWorld()
    world.fail(write, 'unknown')
    expect(await publish(world)).toMatchObject({ kind: 'fault', code: 'github/failed' })
    expect(intentOf(world)).toBe(`${stage} 1`)
    const again = await publish(world)
    expect(again).toMatchObject({ kind: 'published', journal: { markers: { [stage]: marker } } })
    expect(world.done).toEqual(ALL)
  })

  test('not done, and nobody knows: pending until deadline and settle time are over', async () => {
    const world = makeWorld()
    world.fail(write, 'lost')
    await publish(world)
    const until = START + deadlineOf(stage) + SETTLE_MS
    for (const ms of [0, until - START - 1]) {
      world.advance(ms)
      const tried = await publish(world)
      expect(tried).toMatchObject({ code: 'publish/pending' })
      expect(tried).toMatchObject({ fault: { details: { stage, until: toTimestamp(until) } } })
      expect([intentOf(world), world.done.includes(write)]).toEqual([`${stage} 1`, false])
    }
    world.advance(1)
    world.fail(write, 'lost')
    expect(await publish(world)).toMatchObject({ code: 'github/failed' })
    expect(intentOf(world)).toBe(`${stage} 2`)
    world.advance(deadlineOf(stage) + SETTLE_MS)
    if (stage === 'commented') {
      // Repeated, so that a twin may come to light: looked at again when that is over.
      expect(await publish(world)).toMatchObject({ code: 'publish/pending' })
      world.advance(LIMITS.intentMs + SETTLE_MS)
    }
    await publish(world)
    expect(world.done).toEqual(ALL)
  })

  test('it takes effect late: the next look records it, and there is no second one', async () => {
    const world = makeWorld({ lateMs: 100_000, lagMs: 20_000 })
    world.fail(write, 'late')
    await publish(world)
    expect(await publish(world)).toMatchObject({ code: 'publish/pending' })
    for (let tries = 0; tries < 20; tries += 1) {
      world.advance(30_000)
      if ((await publish(world)).kind === 'published') break
    }
    expect(stored(world)?.markers).toMatchObject({ [stage]: marker })
    expect([...world.done].sort()).toEqual([...ALL].sort())
  })
})

describe('a comment that came twice after all', () => {
  test('the first one shows later than the settle time: the younger is removed', async () => {
    const lateMs = LIMITS.intentMs + SETTLE_MS + 40_000
    const world = makeWorld({ lateMs })
    world.fail('createComment', 'late')
    await publish(world)
    world.advance(LIMITS.intentMs + SETTLE_MS)
    expect(await publish(world)).toMatchObject({ code: 'publish/pending' })
    world.advance(LIMITS.intentMs + SETTLE_MS)
    expect(await publish(world)).toMatchObject({ kind: 'published' })
    expect(world.comments.map(({ id }) => id)).toEqual([500])
    expect(stored(world)?.markers.commented).toBe('500')
  })

  test('the younger one goes even while only the first is listed', async () => {
    const world = makeWorld()
    world.fail('createComment', 'late')
    await publish(world)
    const older = comment(400, { body: MARKER.completion, authorId: US.id })
    world.advance(LIMITS.intentMs + SETTLE_MS)
    world.ports.github.comments = async () => ({ value: [], serverTime: world.now() })
    world.ports.github.issue = async (key) => ({ ...OPEN_ISSUE, number: key.number })
    await publish(world)
    world.advance(SETTLE_MS)
    world.ports.github.comments = async () => ({ value: [older], serverTime: world.now() })
    const removed: number[] = []
    world.ports.github.deleteComment = async (_, id) => void removed.push(id)
    expect(await publish(world)).toMatchObject({ kind: 'published' })
    expect([removed, stored(world)?.markers.commented]).toEqual([[501], '400'])
  })

  test('one that somebody removed meanwhile is not written again', async () => {
    const world = makeWorld()
    world.fail('createComment', 'lost')
    await publish(world)
    world.advance(LIMITS.intentMs + SETTLE_MS)
    await publish(world)
    world.comments.length = 0
    for (const _ of [1, 2, 3]) {
      world.advance(SETTLE_MS)
      expect(await publish(world)).toMatchObject({ code: 'publish/pending' })
    }
    world.advance(SETTLE_MS)
    expect(await publish(world)).toMatchObject({ kind: 'published' })
    expect(world.done.filter((name) => name === 'createComment')).toHaveLength(1)
    expect(stored(world)?.markers.commented).toBe('500')
  })

  test('a second try that certainly came to nothing leaves the first one open', async () => {
    const world = makeWorld()
    world.fail('createComment', 'lost')
    await publish(world)
    world.advance(LIMITS.intentMs + SETTLE_MS)
    world.fail('createComment', 'refused')
    await publish(world)
    expect(stored(world)?.intent).toMatchObject({ stage: 'commented', attempt: 1 })
    expect(await publish(world)).toMatchObject({ code: 'publish/pending' })
  })

  test('a comment of somebody else with the same text is left alone', async () => {
    const world = makeWorld()
    world.comments.push(comment(3, { body: MARKER.completion, authorId: 5 }))
    world.fail('createComment', 'lost')
    await publish(world)
    world.advance(LIMITS.intentMs + SETTLE_MS)
    await publish(world)
    world.advance(LIMITS.intentMs + SETTLE_MS)
    await publish(world)
    expect(world.comments.map(({ id }) => id)).toEqual([3, 500])
  })
})

describe('two looks before a second try', () => {
  test.each(['createPull', 'createComment', 'removeLabel', 'close'] as const)(
    'a clock that is set ahead does not shorten the time of %s',
    async (name) => {
      const world = makeWorld()
      world.fail(name, 'lost')
      await publish(world)
      const sent = () => world.asked.filter((one) => one === name).length
      world.skew(3_600_000)
      const tried = await publish(world)
      expect(tried).toMatchObject({ code: 'publish/pending' })
      expect(sent()).toBe(1)
      const until = tried.kind === 'waits' ? Date.parse(String(detailsOf(tried.fault)['until'])) : 0
      world.advance(until - 3_600_000 - world.now() - 1)
      expect(await publish(world)).toMatchObject({ code: 'publish/pending' })
      world.advance(1)
      await publish(world)
      expect(sent()).toBe(2)
    },
  )

  test('what appears only at the second look is not done again', async () => {
    const world = makeWorld()
    world.fail('push', 'lost')
    await publish(world)
    world.advance(PUSH_MS + SETTLE_MS)
    let looks = 0
    const git: PublishPorts['git'] = {
      ...world.ports.git,
      remoteBranch: async () => {
        looks += 1
        return looks === 1 ? null : COMMIT
      },
    }
    const ports = { ...world.ports, git }
    expect(await publish(world, {}, { ports })).toMatchObject({ code: 'publish/pending' })
    expect([looks, world.done]).toEqual([2, []])
    expect(await publish(world, {}, { ports })).toMatchObject({ kind: 'published' })
    expect(world.done).not.toContain('push')
  })

  test('a look that fails proves nothing: the intent stays as it is', async () => {
    const world = makeWorld()
    world.fail('createComment', 'lost')
    await publish(world)
    world.advance(30_000 + SETTLE_MS)
    const before = stored(world)
    const comments: PublishPorts['github']['comments'] = () =>
      Promise.reject(fault('github/unreachable', { request: 'r', reason: 'x' }))
    const ports = { ...world.ports, github: { ...world.ports.github, comments } }
    expect(await publish(world, {}, { ports })).toMatchObject({ code: 'github/unreachable' })
    expect(stored(world)).toEqual(before)
  })
})

describe('when it must not go on', () => {
  test.each([false, true])('a foreign commit on the branch, an intent open: %s', async (isOpen) => {
    const world = makeWorld()
    if (isOpen) world.fail('push', 'lost')
    if (isOpen) await publish(world)
    world.branches.set(JOURNAL.branch, 'f'.repeat(40))
    world.advance(PUSH_MS + SETTLE_MS)
    const tried = await publish(world)
    expect(tried).toMatchObject({ kind: 'stopped', code: 'git/foreign-branch' })
    expect(tried).toMatchObject({ fault: { details: { found: 'f'.repeat(40), expected: COMMIT } } })
    expect([world.done, world.branches.get(JOURNAL.branch)]).toEqual([[], 'f'.repeat(40)])
  })

  test('the run was taken over: nothing more is written, here or there', async () => {
    const atOnce = makeWorld()
    atOnce.lost.claim = true
    expect(await publish(atOnce)).toMatchObject({ code: 'state/claim-mismatch' })
    expect([stored(atOnce)?.markers, atOnce.done]).toEqual([{}, []])

    const later = makeWorld()
    const github: PublishPorts['github'] = {
      ...later.ports.github,
      pullRequestsByHead: async () => {
        later.lost.claim = true
        return { value: [], serverTime: START }
      },
    }
    const tried = await publish(later, {}, { ports: { ...later.ports, github } })
    expect(tried).toMatchObject({ code: 'state/claim-mismatch' })
    expect([later.done, stored(later)?.intent]).toEqual([['push'], null])
  })

  test('withdrawn before the push: nothing leaves; asked again after a push that certainly failed', async () => {
    const world = makeWorld()
    const reason = fault('issue/withdrawn', { issue: 'i', reason: 'it was closed' })
    world.fail('push', 'refused')
    await publish(world)
    const tried = await publish(world, {}, { withdrawn: async () => reason })
    expect(tried).toEqual({ kind: 'stopped', code: 'issue/withdrawn', fault: reason })
    expect([world.done, stored(world)?.intent]).toEqual([[], null])
  })

  test.each([
    ['code', 'push'],
    ['findings', 'createComment'],
  ] as const)('%s: withdrawn while its %s was lost: it is not repeated', async (plan, write) => {
    const world = makeWorld()
    const reason = fault('issue/withdrawn', { issue: 'i', reason: 'it was closed' })
    world.fail(write, 'lost')
    await publish(world, {}, { plan })
    world.advance(PUSH_MS + SETTLE_MS)
    const tried = await publish(world, {}, { plan, withdrawn: async () => reason })
    expect(tried).toMatchObject({ code: 'issue/withdrawn' })
    expect(world.done).toEqual([])
  })

  test('once the push may have happened it goes on, and nobody asks', async () => {
    const withdrawn = async (): Promise<never> => {
      throw new TypeError('asked')
    }
    const open = makeWorld()
    open.fail('push', 'unknown')
    await publish(open)
    expect(await publish(open, {}, { withdrawn })).toMatchObject({ kind: 'published' })

    const pushed = makeWorld()
    pushed.fail('createPull', 'refused')
    await publish(pushed)
    expect(await publish(pushed, {}, { withdrawn })).toMatchObject({ kind: 'published' })

    const findings = makeWorld()
    findings.fail('removeLabel', 'refused')
    await publish(findings, {}, { plan: 'findings' })
    const tried = await publish(findings, {}, { plan: 'findings', withdrawn })
    expect(tried).toMatchObject({ kind: 'published' })
  })

  test.each(['findings', 'no-changes'] as const)(
    'withdrawn before the comment of %s: nothing is said',
    async (plan) => {
      const world = makeWorld()
      const reason = fault('issue/withdrawn', { issue: 'i', reason: 'it was closed' })
      const tried = await publish(world, {}, { plan, withdrawn: async () => reason })
      expect(tried).toMatchObject({ code: 'issue/withdrawn' })
      expect(world.done).toEqual([])
    },
  )
})
