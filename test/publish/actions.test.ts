import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import { fault, isFault } from '../../daemon/core/fault.ts'
import type { Journal, PublishPlan } from '../../daemon/core/journal.ts'
import type { PullRequest, TimelineEvent, TreeChange } from '../../daemon/core/ports.ts'
import { fromTimestamp, toTimestamp } from '../../daemon/core/timestamp.ts'
import { carriesMarker, renderMarker } from '../../daemon/publish/render-publication.ts'
import type { PublishPorts } from '../../daemon/publish/run-actions.ts'
import { type PublishPolicy, validateTree } from '../../daemon/publish/validate-tree.ts'
import { detailsOf } from '../support/faults.ts'
import {
  COMMIT,
  comment,
  JOURNAL,
  MARKER,
  makeWorld,
  POLICY,
  publicationOf,
  publish,
  pull,
  RUN,
  SETTLE_MS,
  START,
  timelineEvent,
  US,
  type World,
  type WriteName,
} from './publish-world.ts'

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
    ['a stranger’s, marker and all (C49)', [pull(3, { authorId: 5, state: 'closed' })], '12'],
    ['of an account that is gone', [pull(3, { authorId: null, state: 'closed' })], '12'],
    ['a stranger’s against another base', [pull(3, { authorId: 5, baseBranch: 'x' })], '12'],
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
    expect(tried).toMatchObject({ code: 'github/pull-unlisted' })
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

  test.each<[string, Partial<PullRequest>]>([
    ['marker and all (C49)', { authorId: 5 }],
    ['of an account that is gone', { authorId: null }],
    ['without a marker', { authorId: 5, body: 'mine' }],
  ])('an open one of somebody else, %s, is in the way and needs a human', async (_, other) => {
    const world = makeWorld()
    world.pulls.push(pull(3, other))
    const { tried, journal } = await after(world, { markers: PUSHED })
    expect(tried).toMatchObject({
      code: 'github/foreign-pull',
      fault: { details: { number: 3, kept: expect.stringContaining(COMMIT) } },
    })
    expect([journal?.intent, world.done]).toEqual([null, []])
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
    expect(tried).toMatchObject({ code: 'github/comments-unlisted' })
    expect(world.done).toEqual([])
  })

  test('one of two that were sent is not all, as long as the list is shorter than the issue says', async () => {
    const world = makeWorld()
    world.comments.push(ours(8, MARKER.completion), ours(9, MARKER.completion))
    const intent = { ...openIntent('commented', world), attempt: 2 }
    const [first] = world.comments
    const comments = async () => ({ value: first === undefined ? [] : [first], serverTime: START })
    const { tried } = await after(world, { ...start, intent }, { comments })
    expect(tried).toMatchObject({ code: 'github/comments-unlisted' })
    expect((await after(world, { ...start, intent })).journal?.markers.commented).toBe('8')
    expect(world.comments.map(({ id }) => id)).toEqual([8])
  })

  test.each([
    ['no write is open: after three looks', null, 3],
    ['a write was sent twice: after six', 2, 6],
  ])('what GitHub counts and never lists does not wait for ever; %s', async (_, sent, looks) => {
    const world = makeWorld()
    world.comments.push(comment(1), comment(2))
    const comments = async () => ({ value: [comment(1)], serverTime: START })
    const open = openIntent('commented', world)
    const intent = sent === null ? null : { ...open, attempt: sent }
    const trouble = (count: number) => ({ trouble: { count, since: toTimestamp(START) } })
    const last = { ...start, intent, ...trouble(looks - 1) }
    expect((await after(world, last, { comments })).tried).toMatchObject({
      code: 'github/comments-unlisted',
    })
    const next = makeWorld()
    next.comments.push(...world.comments)
    next.advance(SETTLE_MS)
    await after(next, { ...start, intent, ...trouble(looks) }, { comments })
    expect(next.done).toContain('createComment')
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

  test('nor is anything done again when the token was replaced by another account’s', async () => {
    const world = makeWorld()
    const theirs = { id: 77, login: 'new-bot' }
    Object.assign(world.viewer, theirs)
    world.pulls.push(pull(3, { authorId: theirs.id }))
    world.comments.push(comment(8, { body: MARKER.completion, authorId: theirs.id }))
    world.timeline.push(
      timelineEvent('unlabeled', { actorId: theirs.id }),
      timelineEvent('closed', { actorId: theirs.id }),
    )
    await after(world, { markers: PUSHED })
    expect(world.ports.journals.read(RUN)?.markers).toMatchObject({
      pr_created: '3',
      commented: '8',
    })
    for (const stage of ['label_removed', 'closed'] as const) {
      const before = makeWorld()
      Object.assign(before.viewer, theirs)
      before.timeline.push(...world.timeline)
      const markers = stage === 'closed' ? { ...COMMENTED, label_removed: 'removed' } : COMMENTED
      await after(before, { markers, intent: openIntent(stage, before) })
      expect(before.done).not.toContain(stage === 'closed' ? 'close' : 'removeLabel')
    }
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

const file = (path: string, change: Partial<TreeChange> = {}): TreeChange => ({
  path,
  status: 'added',
  oldMode: '000000',
  newMode: '100644',
  newOid: 'o',
  size: 10,
  linkTarget: null,
  ...change,
})
const link = (path: string, linkTarget: string): TreeChange =>
  file(path, { newMode: '120000', linkTarget })
const removed = (path: string): TreeChange =>
  file(path, { status: 'deleted', newMode: '000000', size: 0 })

/** 'fine', or the code and the first words of what is wrong. */
function verdict(
  changes: readonly TreeChange[],
  change: Partial<PublishPolicy> = {},
  linksOut: readonly string[] = [],
): string {
  const captured = { treeOid: 't', changes, submodulesKept: [], linksOut }
  try {
    validateTree(captured, { ...POLICY, ...change }, '/the tree')
    return 'fine'
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    expect(detailsOf(thrown)['tree']).toBe('/the tree')
    return `${thrown.code}: ${String(detailsOf(thrown)['reason'])}`
  }
}

describe('what a worker must not leave', () => {
  test.each([
    '.git/config',
    'a/.git/hooks/pre-commit',
    '.GIT/config',
    'sub/.Git',
    '.git./x',
    '.git /x',
    '.git .:stream',
    '.git:alternate/x',
    'git~1/config',
    '.g\u200Cit/config',
    '\uFF0Egit/config',
  ])('a path that is a git directory to some file system: %j', (path) => {
    expect(verdict([file('fine'), file(path)])).toMatch(/^worker\/tree-unusable: .* git directory$/)
  })

  test.each(['.gitignore', '.github/x', 'a.git/x', 'git/x', '.git-blame-ignore-revs', 'x.git:y'])(
    '%s is none',
    (path) => {
      expect(verdict([file(path)])).toBe('fine')
    },
  )

  test('a link out of the tree', () => {
    expect(verdict([link('l', 'a/../x')])).toBe('fine')
    expect(verdict([link('l', 'a/../x')], {}, ['l', 'm'])).toBe(
      'worker/tree-unusable: "l" links to outside the tree',
    )
  })

  test('a repository of its own', () => {
    expect(verdict([file('sub', { newMode: '160000' })])).toMatch(/^worker\/tree-unusable: "sub"/)
  })
})

describe('what a human has to decide', () => {
  const protectedPaths = ['.github/workflows/**', '*.pem', 'Makefile', 'keys/']
  test.each([
    [file('.github/workflows/ci.yml'), true],
    [file('.github/workflows/deep/er/ci.yml'), true],
    [removed('.github/workflows/ci.yml'), true],
    [file('.GitHub/Workflows/CI.yml'), true],
    [file('.github/workflows/a\nb.yml'), true],
    [file('a.pem'), true],
    [file('.hidden.pem'), true],
    [file('makefile'), true],
    [file('keys/a/b'), true],
    [file('keys.txt'), false],
    [file('.github/other.yml'), false],
    [file('x/.github/workflows/ci.yml'), false],
    [file('x/a.pem'), false],
    [file('Makefile.am'), false],
  ])('a protected path: %j', (change, isProtected) => {
    const found = verdict([file('fine'), change], { protectedPaths })
    if (isProtected) expect(found).toMatch(/^publish\/policy: .* is protected \(protected_paths\)$/)
    else expect(found).toBe('fine')
    expect(verdict([change], { protectedPaths: [] })).toBe('fine')
  })

  test('one file too many', () => {
    const changes = [file('a'), removed('b'), file('c')]
    expect(verdict(changes, { maxChangedFiles: 3 })).toBe('fine')
    expect(verdict(changes, { maxChangedFiles: 2 })).toMatch(
      /^publish\/policy: 3 files changed, more than 2 \(max_changed_files\)/,
    )
  })

  test('a file or a whole that is a byte too large', () => {
    const changes = [file('a', { size: 60 }), file('b', { size: 40 })]
    expect(verdict(changes, { maxFileBytes: 60, maxDiffBytes: 100 })).toBe('fine')
    expect(verdict(changes, { maxFileBytes: 59 })).toMatch(/^publish\/policy: "a" has 60 bytes/)
    expect(verdict(changes, { maxDiffBytes: 99 })).toMatch(/^publish\/policy: 100 bytes changed/)
  })

  test('what the worker did wrong comes before what a human has to decide', () => {
    const changes = [file('Makefile'), link('l', '/x')]
    const found = verdict(changes, { protectedPaths, maxChangedFiles: 1 }, ['l'])
    expect(found).toMatch(/^worker\//)
  })

  test('nothing is always fine', () => {
    expect(verdict([], { maxChangedFiles: 0, maxDiffBytes: 0, maxFileBytes: 0 })).toBe('fine')
  })
})

// Design §1.7: one branch, one PR, one comment, one label change, one close per run, whatever dies when. Every
// call of a port is a place to die: before it, after it, and, for a write, with the request on its way.

class SimulatedCrash extends Error {}

/** before: not done. after: done, and nobody heard of it. late: sent, and it takes effect after the death. */
type Crash = Readonly<{ at: number; when: 'before' | 'after' | 'late' }>

const WRITES: Readonly<Record<string, WriteName>> = {
  pushNewBranch: 'push',
  createPullRequest: 'createPull',
  createComment: 'createComment',
  removeLabel: 'removeLabel',
  closeIssue: 'close',
}
const EFFECTS: Readonly<Record<PublishPlan, readonly WriteName[]>> = {
  code: ['push', 'createPull', 'createComment', 'removeLabel', 'close'],
  findings: ['createComment', 'removeLabel', 'close'],
  'no-changes': ['createComment'],
  notice: ['createComment'],
}
const PLANS = Object.keys(EFFECTS) as readonly PublishPlan[]

/** The ports of a process that dies at its n-th call, and how many calls it has made. */
function mortal(world: World, crash: Crash | null): { ports: PublishPorts; calls: () => number } {
  let calls = 0
  const observe = ({ method, when }: Effect): void => {
    if (when === 'before') calls += 1
    if (crash === null || calls !== crash.at) return
    const write = WRITES[method]
    if (crash.when === 'late' && when === 'before' && write !== undefined) world.fail(write, 'late')
    const dies =
      crash.when === 'late' ? write !== undefined && when !== 'before' : when === crash.when
    if (dies) throw new SimulatedCrash()
  }
  const { git, github, journals } = world.ports
  const ports: PublishPorts = {
    ...world.ports,
    git: countEffects('git', git, observe),
    github: countEffects('github', github, observe),
    journals: countEffects('journals', journals, observe),
  }
  return { ports, calls: () => calls }
}

/** One process after another, each dying as told, until the run is published. Returns the calls of the first. */
async function publishThroughCrashes(
  world: World,
  plan: PublishPlan,
  crashes: readonly Crash[],
): Promise<number> {
  let first: number | null = null
  for (let process = 0; process < crashes.length + 40; process += 1) {
    const { ports, calls } = mortal(world, crashes[process] ?? null)
    try {
      const tried = await publish(world, {}, { plan, ports })
      if (tried.kind === 'published') return first ?? calls()
      // Alive, but it has to wait, as a runner that leaves and is started again.
      const until = detailsOf(tried.fault)['until']
      const waits = typeof until === 'string' ? fromTimestamp(until) - world.now() : 10_000
      world.advance(Math.min(waits, 60_000))
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    first ??= calls()
  }
  throw new RangeError('it never ended')
}

/** What must hold at the end, whatever happened on the way. */
async function expectOnce(world: World, plan: PublishPlan, crashes: readonly Crash[]) {
  world.advance(SETTLE_MS * 10) // everything still on its way arrives
  const journal = world.ports.journals.read(RUN)
  await world.ports.git.remoteBranch('', '', null)
  const { issue, branches, pulls, comments, timeline } = world
  const count = (list: Readonly<{ length: number }>, name: WriteName): boolean =>
    list.length === (EFFECTS[plan].includes(name) ? 1 : 0)
  const told = { crashes, done: [...world.done].sort() }
  expect(told).toEqual({ crashes, done: [...EFFECTS[plan]].sort() })
  expect([
    count([...branches], 'push'),
    count(pulls, 'createPull'),
    count(comments, 'createComment'),
    timeline.length,
  ]).toEqual([true, true, true, EFFECTS[plan].includes('close') ? 2 : 0])
  expect(issue).toEqual(
    EFFECTS[plan].includes('close')
      ? { labels: ['bug'], isOpen: false }
      : { labels: ['bug', expect.any(String)], isOpen: true },
  )
  expect(journal).toMatchObject({ intent: null, publication: publicationOf(plan) })
  const markers = Object.keys(journal?.markers ?? {})
  expect(markers).toHaveLength(EFFECTS[plan].length + (plan === 'code' ? 1 : 0))
}

describe.each(PLANS)('the plan %s', (plan) => {
  test.each([
    { lagMs: 0, lateMs: 25_000 },
    { lagMs: 15_000, lateMs: 10_000 },
    { lagMs: 90_000, lateMs: 29_000 },
  ])('dies once, at every call and in every way: %j', async (slowness) => {
    const calls = await publishThroughCrashes(makeWorld(slowness), plan, [])
    expect(calls).toBeGreaterThan(EFFECTS[plan].length * 4)
    for (let at = 1; at <= calls; at += 1) {
      for (const when of ['before', 'after', 'late'] as const) {
        const world = makeWorld(slowness)
        await publishThroughCrashes(world, plan, [{ at, when }])
        await expectOnce(world, plan, [{ at, when }])
      }
    }
  })

  test('every process dies where it likes, several in a row', async () => {
    const crash: fc.Arbitrary<Crash> = fc.record({
      at: fc.integer({ min: 1, max: 12 }),
      when: fc.constantFrom('before', 'after', 'late'),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(crash, { minLength: 2, maxLength: 10 }),
        fc.integer({ min: 0, max: 60_000 }),
        fc.integer({ min: 0, max: 30_000 }),
        async (crashes, lagMs, lateMs) => {
          const world = makeWorld({ lagMs, lateMs })
          await publishThroughCrashes(world, plan, crashes)
          await expectOnce(world, plan, crashes)
        },
      ),
      { numRuns: 300 },
    )
  })
})
