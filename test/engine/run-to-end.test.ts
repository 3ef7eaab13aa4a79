import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import type { SupervisionEnd } from '../../daemon/core/executor.ts'
import { withEffect } from '../../daemon/core/fault.ts'
import type { TimelineEvent } from '../../daemon/core/ports.ts'
import { reopenJournal } from '../../daemon/core/resume.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { JOURNAL, pull, RUN, START, timelineEvent } from '../publish/publish-world.ts'
import { sampleFault } from '../support/faults.ts'
import { AT } from './engine-scene.ts'
import { exited, RESULT, UNCHANGED, useRun } from './run-scene.ts'

const run = useRun()
const EFFECTS = ['push', 'createPull', 'createComment', 'removeLabel', 'close']

describe('a run from its claim to its end', () => {
  test('publishes, tells the queue, and clears up after itself', async () => {
    await run().at('starting')
    expect((await run().carry()).kind).toBe('settled')
    expect(run().world.done).toEqual(EFFECTS)
    expect(run().entry()).toMatchObject({
      phase: 'awaiting_review',
      attempts: 0,
      runId: null,
      lastRunId: RUN,
      pull: { number: 12, url: 'https://github.com/Acme/Widgets/pull/12' },
      lastError: null,
    })
    expect([run().treeExists(), existsSync(run().paths.heartbeat)]).toEqual([false, false])
    expect([run().isHeld(), run().scene.claims.list()]).toEqual([false, []])
    expect(JSON.parse(readFileSync(run().paths.result, 'utf8'))).toEqual(RESULT)
    expect(run().stored()).toMatchObject({ stage: 'settled', outcome: { on: 'published' } })
  })

  test('the newest labelling it answers is remembered, and the label as the issue spells it', async () => {
    const labeled = (id: number, label: string) => ({
      id,
      kind: 'labeled',
      actor: 'ada',
      actorId: 1,
      createdAt: START,
      label,
      pull: null,
    })
    run().world.timeline.push(
      labeled(5, '🤖 auto-fix'),
      labeled(8, 'bug'),
      labeled(7, JOURNAL.label),
    )
    await run().at('owned', { label: 'as configured', labeledEventId: 1 })
    await run().carry()
    expect(run().stored()).toMatchObject({ label: JOURNAL.label, labeledEventId: 7 })
    expect(run().entry()?.labeledEventId).toBe(7)
  })

  test('the tree of the attempt before goes only when this one makes its own', async () => {
    const previousRunId = RUN.replace('1', '2')
    const old = run().scene.layout.worktree(JOURNAL.key, previousRunId)
    mkdirSync(old, { recursive: true })
    await run().at('owned', { previousRunId })
    run().github.issue = async () => null
    await run().carry()
    expect([run().entry()?.phase, existsSync(old)]).toEqual(['skipped', true])

    await run().at('owned', { previousRunId })
    run().github.issue = run().world.ports.github.issue.bind(null)
    run().die()
    await run().carry()
    expect([run().entry()?.phase, existsSync(old)]).toEqual(['awaiting_review', false])
  })

  test('an investigation: findings, no commit, and edits are told, not published', async () => {
    run().world.issue.labels = ['🤖 auto-look']
    await run().at('starting', { ticket: 'investigation' })
    await run().carry()
    expect(run().world.done).toEqual(['createComment', 'removeLabel', 'close'])
    expect(run().world.requests).toEqual([])
    expect(run().world.comments[0]?.body).toContain('1 edited file(s) were not published')
    expect(run().entry()).toMatchObject({ phase: 'done', pull: null })
  })

  test('a success without changes: the summary is posted, and a human is asked', async () => {
    run().git.captureTree = async () => UNCHANGED
    await run().at('starting')
    await run().carry()
    expect(run().world.done).toEqual(['createComment'])
    expect(run().entry()).toMatchObject({
      phase: 'needs_attention',
      attempts: 0,
      blocked: { source: 'publish/no-changes' },
    })
    expect(run().world.issue.isOpen).toBe(true)
  })

  test('a dry run: a report and not one write, though it would have been refused', async () => {
    run().worker.result = { ...RESULT, summary: 'Made by a forbidden tool.' }
    const policy = { ...run().settings.policy, forbiddenStrings: ['forbidden'] }
    await run().at('starting', { dryRun: true })
    await run().carry({ settings: { ...run().settings, policy } })
    expect([run().world.done, run().world.requests]).toEqual([[], []])
    expect(run().entry()).toMatchObject({ phase: 'previewed', attempts: 0 })
    const report = readFileSync(run().paths.dryRunReport, 'utf8')
    for (const part of ['forbidden', JOURNAL.branch, 'modified  a.txt', 'a difference', RUN]) {
      expect(report).toContain(part)
    }
    expect(run().treeExists()).toBe(true)
  })

  test('withdrawn while the worker ran: nothing is pushed', async () => {
    await run().at('launching')
    run().executor.watch = async () => {
      run().world.issue.isOpen = false
      return exited()
    }
    await run().carry()
    expect([run().entry()?.phase, run().world.done]).toEqual(['skipped', []])
  })
})

describe('what on GitHub keeps a run from being published', () => {
  const closing = (isOpen = true, body = 'Fixes #7'): TimelineEvent => ({
    ...timelineEvent('closed', { kind: 'cross-referenced', actor: 'bob', actorId: 5 }),
    pull: { repository: null, number: 5, isOpen, author: 'bob', title: 'mend it', body },
  })

  test('an open pull request that closes the issue: no worker is paid, and it is named', async () => {
    run().world.timeline.push(closing())
    await run().at('starting')
    await run().carry()
    expect([run().entry()?.phase, run().worker.launches]).toEqual(['skipped', 0])
    expect(run().entry()?.lastError).toMatchObject({
      code: 'issue/has-pull',
      message: expect.stringContaining('Acme/Widgets#5 by bob'),
    })
    expect(run().treeExists()).toBe(false)
  })

  test('one that came while the worker ran: nothing is pushed, and the work is kept', async () => {
    await run().at('launching')
    run().world.timeline.push(closing())
    await run().carry()
    expect([run().entry()?.phase, run().world.done]).toEqual(['skipped', []])
    expect(run().treeExists()).toBe(true)
  })

  test.each([
    ['it is closed', closing(false), 'skip'],
    ['it only mentions the issue', closing(true, 'See #7'), 'skip'],
    ['existing_pr is ignore', closing(), 'ignore'],
  ] as const)('but not when %s', async (_, event, existingPull) => {
    run().world.timeline.push(event)
    await run().at('starting')
    await run().carry({ settings: { ...run().settings, existingPull } })
    expect(run().entry()?.phase).toBe('awaiting_review')
  })

  test('a foreign commit on its branch: told in one comment, nothing overwritten, a human decides', async () => {
    run().world.branches.set(JOURNAL.branch, 'f'.repeat(40))
    await run().at('publishing')
    await run().carry()
    expect(run().world.done).toEqual(['createComment'])
    expect(run().world.comments[0]?.body).toContain('f'.repeat(40))
    expect(run().entry()).toMatchObject({
      phase: 'needs_attention',
      blocked: { source: 'git/foreign-branch' },
    })
    expect([run().treeExists(), run().world.issue.isOpen]).toEqual([true, true])
  })

  test('a pull request of somebody else from its branch: told, left alone, a human decides', async () => {
    run().world.pulls.push(pull(3, { authorId: 5 }))
    await run().at('publishing')
    await run().carry()
    expect(run().world.done).toEqual(['push', 'createComment'])
    expect(run().world.comments[0]?.body).toContain('#3')
    expect(run().entry()).toMatchObject({
      phase: 'needs_attention',
      blocked: { source: 'github/foreign-pull' },
    })
    expect([run().treeExists(), run().world.issue.isOpen]).toEqual([true, true])

    // A human closes it and lets the run go on: with the commit that is on the branch, and a pull request of our own.
    run().world.pulls.splice(0, 1, pull(3, { authorId: 5, state: 'closed' }))
    const halted = run().stored()
    const reopened = halted === null ? null : reopenJournal(halted)
    run().die()
    await run().at('finished', reopened ?? {})
    await run().carry()
    const more = ['createPull', 'createComment', 'removeLabel', 'close']
    expect(run().world.done).toEqual(['push', 'createComment', ...more])
    expect(run().world.requests).toHaveLength(1)
    expect(run().entry()).toMatchObject({ phase: 'awaiting_review', pull: { number: 12 } })
  })

  test.each<[string, (world: ReturnType<typeof run>['world']) => void, object]>([
    [
      'its branch is gone, so the same commit is pushed again',
      ({ branches }) => branches.delete(JOURNAL.branch),
      { done: ['push', 'createComment', 'push', 'createPull'], phase: 'awaiting_review' },
    ],
    [
      'its branch has grown, so nothing of it is published',
      ({ branches }) => branches.set(JOURNAL.branch, 'f'.repeat(40)),
      { done: ['push', 'createComment'], phase: 'needs_attention' },
    ],
    [
      'its issue was closed, so it is not wanted any more',
      ({ issue }) => {
        issue.isOpen = false
      },
      { done: ['push', 'createComment'], phase: 'skipped' },
    ],
  ])('after that and a reset: %s', async (_, change, wanted) => {
    run().world.pulls.push(pull(3, { authorId: 5 }))
    await run().at('publishing')
    await run().carry()
    run().world.pulls.splice(0, 1, pull(3, { authorId: 5, state: 'closed' }))
    change(run().world)
    const halted = run().stored()
    run().die()
    await run().at('finished', (halted && reopenJournal(halted)) ?? {})
    await run().carry()
    expect({ done: run().world.done.slice(0, 4), phase: run().entry()?.phase }).toEqual(wanted)
    expect(run().world.requests).toHaveLength(1)
  })

  test('even that is not said when it would hold a forbidden word', async () => {
    run().world.branches.set(JOURNAL.branch, 'f'.repeat(40))
    const policy = { ...run().settings.policy, forbiddenStrings: ['overwritten'] }
    await run().at('publishing')
    await run().carry({ settings: { ...run().settings, policy } })
    expect([run().world.done, run().entry()?.phase]).toEqual([[], 'needs_attention'])
  })
})

describe('what a run tells about its surroundings', () => {
  const circuits = () => run().scene.ports.store.readQueue().circuits
  const failed = { failures: 2, until: AT, lastError: { code: 'git/failed', message: 'm', at: AT } }
  const withCircuits = async (): Promise<void> => {
    await run().scene.ports.store.changeQueue((queue) => ({
      state: {
        ...queue,
        circuits: { 'repository:acme/widgets': failed, 'provider:github': failed },
      },
      value: null,
    }))
  }

  test('a failure to fetch counts for its repository', async () => {
    await run().at('owned')
    run().git.fetchBase = () => Promise.reject(sampleFault('git/failed', { operation: 'fetch' }))
    await run().carry()
    expect(circuits()).toMatchObject({ 'repository:acme/widgets': { failures: 1 } })
  })

  test('a publication that has to wait counts for GitHub', async () => {
    await run().at('publishing')
    run().world.fail('createPull', 'refused')
    run().github.createPullRequest = () =>
      Promise.reject(withEffect('none', sampleFault('github/failed', { status: 502 })))
    expect((await run().carry()).kind).toBe('waiting')
    expect(circuits()).toMatchObject({ 'provider:github': { failures: 1 } })
  })

  test('an end that shows that all works closes both', async () => {
    await run().at('starting')
    await withCircuits()
    await run().carry()
    expect(circuits()).toEqual({})
  })

  test('a worker that fails shows it too', async () => {
    run().worker.ends.push(exited({ exitCode: 1 }))
    await run().at('owned')
    await withCircuits()
    await run().carry()
    expect([run().entry()?.attempts, circuits()]).toEqual([1, {}])
  })
})

describe('what the end of a worker means for the issue', () => {
  const vanished = (workerStarted: boolean, launched = true): SupervisionEnd => ({
    kind: 'vanished',
    launched,
    workerStarted,
  })
  const failed = { status: 'failure', summary: 'no\nway' }

  test.each<[string, SupervisionEnd, object | null, string, number, string | null]>([
    ['exit 0 and a result', exited(), RESULT, 'awaiting_review', 0, null],
    [
      'it lingered after a result',
      exited({ reason: 'completion-grace', exitCode: null, signal: 'SIGKILL' }),
      RESULT,
      'awaiting_review',
      0,
      null,
    ],
    ['exit 0 without a result', exited(), null, 'queued', 1, 'worker/result-missing'],
    [
      'exit 0 with a bad one',
      exited(),
      { ...RESULT, summary: '' },
      'queued',
      1,
      'worker/result-invalid',
    ],
    ['exit 0 with a failure', exited(), failed, 'queued', 1, 'worker/reported-failure'],
    ['exit 3, whatever it wrote', exited({ exitCode: 3 }), RESULT, 'queued', 1, 'worker/exited'],
    [
      'its time was up',
      exited({ reason: 'deadline', exitCode: null }),
      RESULT,
      'queued',
      1,
      'worker/timed-out',
    ],
    [
      'a crash of its own',
      exited({ exitCode: null, signal: 'SIGSEGV' }),
      RESULT,
      'queued',
      1,
      'worker/exited',
    ],
    [
      'a signal from elsewhere',
      exited({ exitCode: null, signal: 'SIGKILL' }),
      RESULT,
      'queued',
      0,
      'worker/interrupted',
    ],
    [
      'cancelled',
      exited({ reason: 'cancelled', exitCode: null }),
      RESULT,
      'skipped',
      0,
      'issue/withdrawn',
    ],
    [
      'the supervisor vanished before it',
      vanished(false),
      RESULT,
      'queued',
      0,
      'worker/supervisor-failed',
    ],
    [
      'the runner died before it launched one',
      vanished(false, false),
      RESULT,
      'queued',
      0,
      'worker/interrupted',
    ],
    [
      'the supervisor vanished, and there is a result',
      vanished(true),
      RESULT,
      'awaiting_review',
      0,
      null,
    ],
    [
      'the supervisor vanished, and there is none',
      vanished(true),
      null,
      'queued',
      0,
      'worker/interrupted',
    ],
    [
      'the supervisor vanished, and it had failed',
      vanished(true),
      failed,
      'queued',
      0,
      'worker/interrupted',
    ],
  ])('%s', async (_, end, result, phase, attempts, code) => {
    run().worker.result = result
    run().worker.ends.push(end)
    await run().at('owned')
    await run().carry()
    expect(run().entry()).toMatchObject({ phase, attempts })
    expect(run().entry()?.lastError?.code ?? null).toBe(code)
    // What a worker left is kept for people when it did not succeed.
    if (phase === 'queued') expect(run().treeExists()).toBe(true)
  })

  test('after a vanished supervisor nothing is judged before all processes are gone', async () => {
    run().worker.ends.push(vanished(true), vanished(true))
    run().executor.reap = async () => ({ kind: 'unkillable', pids: [1] })
    await run().at('launching')
    expect((await run().carry()).kind).toBe('waiting')
    expect([run().entry()?.phase, existsSync(run().paths.result)]).toEqual(['in_progress', false])
    run().executor.reap = async () => ({ kind: 'clear', killed: 1 })
    expect((await run().carry()).kind).toBe('settled')
    expect(run().entry()?.phase).toBe('awaiting_review')
  })

  test('an overdue supervisor is killed, and then the end is looked at again', async () => {
    run().worker.ends.push({ kind: 'overdue' }, vanished(true))
    run().executor.killSupervisor = async () => true
    await run().at('launching')
    await run().carry()
    expect(run().executorCalls).toEqual(['watch', 'watch', 'reap'])
    expect(run().entry()?.phase).toBe('awaiting_review')
  })

  test('while it runs, a heartbeat tells people who and since when', async () => {
    await run().at('launching')
    const { watch } = run().executor
    let seen: unknown = null
    run().executor.watch = async (...args) => {
      const end = await watch?.(...args)
      seen = JSON.parse(readFileSync(run().paths.heartbeat, 'utf8'))
      return end ?? exited()
    }
    await run().carry()
    expect(seen).toMatchObject({
      runId: RUN,
      issue: 'Acme/Widgets#7',
      updatedAt: toTimestamp(START),
    })
  })
})
