import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { QueueList } from '../../daemon/app/list-queue.ts'
import { renderList } from '../../daemon/app/render-queue-list.ts'
import { waitForTickLock } from '../../daemon/app/tick-lock.ts'
import { type Circuits, newEntry, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { isLocked, tryLock } from '../../daemon/sys/kernel-lock.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { crashAt } from '../support/crash-runs.ts'
import { waitUntil } from '../support/processes.ts'
import {
  bridge,
  type Finished,
  GOOD_BRIDGE,
  LABELS,
  openProgramRig,
  type ProgramRig,
} from '../support/program-rig.ts'
import {
  branchesOf,
  expectPublishedOnce,
  fingerprintOf,
  gatedBridge,
  killNow,
  newestRun,
  openGate,
  processesOfRun,
  QUIET,
  refusalOf,
  resultOf,
  startedWorkers,
  toldBy,
} from '../support/program-views.ts'

const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'
const FAILING_BRIDGE = bridge('sys.exit(3)')
/** Its summary breaks the rule for outgoing texts, so the run stops with its worker paid. */
const FORBIDDEN_WORD = `open('app.txt', 'a').write('mended\\n')\n${resultOf({ summary: 'Written by Hermes.' })}`
/** How the rig tells of a program that was ended by a signal. */
const KILLED = -1

const jsonOf = ({ stdout }: Finished): unknown => JSON.parse(stdout)
const starts = (rig: ProgramRig): number =>
  toldBy(rig).filter((line) => line.startsWith('start')).length

describe('what do queue list and queue show tell?', () => {
  let rig: ProgramRig

  const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`
  const dueAt = new Date(Date.now() + 300_000).toISOString()
  const entry = (number: number, fields: Partial<QueueEntry>): QueueEntry => ({
    ...newEntry({ owner: 'Octo', name: 'App', number }, 'code', at(number), at(number)),
    ...fields,
  })
  const error = (message: string) => ({ code: 'worker/exited', message, at: at(30) })
  const ENTRIES: readonly QueueEntry[] = [
    entry(1, { phase: 'done' }),
    entry(2, { phase: 'queued', nextAttemptAt: dueAt, attempts: 1, lastError: error('It ended.') }),
    entry(4, { phase: 'queued' }),
    entry(3, { phase: 'queued', queuedAt: at(5) }),
    entry(5, { phase: 'awaiting_review', pull: { number: 50, url: 'https://x/50' } }),
    entry(6, { phase: 'in_progress', runId: RUN, lastRunId: RUN }),
    entry(7, { phase: 'failed', attempts: 3, lastError: error('It\u001b[2J failed\nfor good.') }),
    entry(8, {
      phase: 'needs_attention',
      lastError: error('A rule was broken.'),
      blocked: { source: 'publish/policy', hint: 'Look at it.' },
    }),
    entry(9, { phase: 'skipped' }),
    entry(10, { phase: 'previewed' }),
  ]

  const seed = async (entries: readonly QueueEntry[], circuits: Circuits = {}): Promise<void> => {
    const store = openJsonStore({ clock: systemClock }, rig.layout.stateDir)
    await store.changeQueue(() => ({
      state: {
        circuits,
        entries: Object.fromEntries(entries.map((one) => [`octo/app#${one.key.number}`, one])),
      },
      value: undefined,
    }))
  }

  beforeAll(async () => {
    rig = await openProgramRig({ clone: false })
  })
  afterAll(async () => {
    await rig.close()
  })

  test('before anything ran the queue is empty, and nothing is made by looking', async () => {
    const before = fingerprintOf(rig.dir)
    expect(await rig.run('queue', 'list')).toEqual({ ...QUIET, stdout: 'The queue is empty.\n' })
    expect(await refusalOf(rig, 'queue', 'show', 'octo/app#1')).toBe(
      'octo/app#1 is not in the queue. See what is: caduceus queue list',
    )
    expect(await refusalOf(rig, 'queue', 'reset', 'octo/app#1')).toMatch(/is not in the queue/)
    expect(fingerprintOf(rig.dir)).toEqual(before)
  })

  test('list has what needs a human first, then what moves, in the order in which it moves', async () => {
    await seed(ENTRIES)
    const { code, stdout, stderr } = await rig.run('queue', 'list')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const rows = stdout.trimEnd().split('\n')
    expect(rows.map((row) => row.split(/ {2,}/))).toEqual([
      ['ISSUE', 'PHASE', 'ATTEMPTS', 'UPDATED', 'NEXT', 'LAST ERROR'],
      ['Octo/App#8', 'needs_attention', '0', at(8), '-', 'A rule was broken.'],
      ['Octo/App#7', 'failed', '3', at(7), '-', 'It [2J failed for good.'],
      ['Octo/App#6', 'in_progress', '0', at(6), '-', '-'],
      ['Octo/App#4', 'queued', '0', at(4), 'next tick', '-'],
      ['Octo/App#3', 'queued', '0', at(3), 'next tick', '-'],
      ['Octo/App#2', 'queued', '1', at(2), `${dueAt} (backoff)`, 'It ended.'],
      ['Octo/App#5', 'awaiting_review', '0', at(5), '#50', '-'],
      ['Octo/App#10', 'previewed', '0', at(10), '-', '-'],
      ['Octo/App#9', 'skipped', '0', at(9), '-', '-'],
      ['Octo/App#1', 'done', '0', at(1), '-', '-'],
    ])
    const list = jsonOf(await rig.run('queue', 'list', '--json')) as QueueList
    expect(list.entries.map(({ issue }) => issue)).toEqual(
      rows.slice(1).map((row) => row.split(' ')[0]),
    )
    expect(list.entries[5]).toMatchObject({
      phase: 'queued',
      attempts: 1,
      next_attempt: { until: dueAt, why: 'backoff' },
      last_error: { code: 'worker/exited', message: 'It ended.' },
    })
  })

  test('one phase alone can be listed, and an unknown one is a usage error that names them all', async () => {
    const { stdout } = await rig.run('queue', 'list', '--phase', 'failed')
    expect(stdout.trimEnd().split('\n')).toHaveLength(2)
    const unknown = await rig.run('queue', 'list', '--phase', 'broken')
    expect(unknown.code).toBe(2)
    for (const phase of ['queued', 'needs_attention', 'awaiting_review']) {
      expect(unknown.stderr).toContain(phase)
    }
    await seed([])
    expect((await rig.run('queue', 'list', '--phase', 'failed')).stdout).toBe(
      'No issue is in the phase failed.\n',
    )
  })

  test('on a terminal an error is cut to its width', async () => {
    await seed([entry(1, { phase: 'failed', lastError: error('x'.repeat(300)) })])
    const shown = jsonOf(await rig.run('queue', 'list', '--json')) as QueueList
    const [head = '', row = ''] = renderList(shown, 120)
    expect(row).toHaveLength(120)
    expect(row).toMatch(/x…$/)
    expect(row.indexOf('xxx')).toBe(head.indexOf('LAST ERROR'))
    expect(renderList(shown, null)[1]).toMatch(/x{300}$/)
  })

  test('show tells the wait and its reason, and the exact command where a human is needed', async () => {
    const circuit = {
      failures: 9,
      until: new Date(Date.now() + 290_000).toISOString(),
      lastError: error('GitHub is away.'),
    }
    await seed(ENTRIES, { 'provider:github': circuit })
    const waiting = await rig.run('queue', 'show', 'octo/app#4')
    expect(waiting.stdout).toContain(
      `next attempt: ${circuit.until} (circuit: its repository or GitHub fails, see: caduceus status)`,
    )
    const backed = jsonOf(await rig.run('queue', 'show', 'OCTO/app#2', '--json'))
    expect(backed).toMatchObject({ next_attempt: { until: dueAt, why: 'backoff' }, last_run: null })
    const { stdout } = await rig.run('queue', 'show', 'Octo/App#8')
    expect(stdout).toContain('Octo/App#8 is needs_attention: a human has to decide\n')
    expect(stdout).toContain(
      '  next: Look at it. To try again: caduceus queue reset Octo/App#8\n  It had no run yet.\n',
    )
  })

  test('a journal that cannot be read is told and hides nothing else', async () => {
    const { directory, journal } = rig.layout.run(RUN)
    mkdirSync(directory, { recursive: true })
    writeFileSync(journal, 'not a journal')
    const { code, stdout } = await rig.run('queue', 'show', 'octo/app#6')
    expect(code).toBe(0)
    expect(stdout).toContain('Octo/App#6 is in_progress')
    expect(stdout).toContain(`    problem: ${journal} is not readable as state: `)
    const { stderr } = await rig.run('queue', 'reprocess', 'octo/app#6')
    expect(stderr).toContain(`caduceus: Nothing of run ${RUN} goes on: ${journal} is not readable`)
    expect(rig.entry(6)).toMatchObject({ phase: 'queued', generation: 2, runId: null })
  })

  test('what is not the name of an issue is a usage error of every command', async () => {
    for (const [verb, ...args] of [
      ['show', 'octo/app'],
      ['reset', 'octo/app#0'],
      ['reprocess', '../app#1'],
      ['show'],
    ]) {
      const { code, stdout, stderr } = await rig.run('queue', verb ?? '', ...args)
      expect({ verb, code, stdout }).toEqual({ verb, code: 2, stdout: '' })
      expect(stderr).not.toBe('')
    }
  })

  test('reset and reprocess refuse other phases with what to do instead, and change nothing', async () => {
    await seed(ENTRIES)
    const before = fingerprintOf(rig.dir)
    expect(await refusalOf(rig, 'queue', 'reset', 'octo/app#1')).toBe(
      'Octo/App#1 is done, which "queue reset" does not change. To have it worked on once more: caduceus queue reprocess Octo/App#1',
    )
    for (const number of [4, 5, 6, 10]) {
      expect(await refusalOf(rig, 'queue', 'reset', `octo/app#${number}`)).toMatch(
        /which "queue reset" does not change\. [A-Z]/,
      )
    }
    expect(await refusalOf(rig, 'queue', 'reprocess', 'octo/app#5')).toBe(
      'Octo/App#5 is awaiting_review, which "queue reprocess" does not change. Merge or close its pull request first; the next tick notices that.',
    )
    const json = await rig.run('queue', 'reset', 'octo/app#1', '--json')
    expect({ code: json.code, ...Object(jsonOf(json)) }).toMatchObject({
      code: 1,
      error: { code: 'queue/refused' },
    })
    expect(fingerprintOf(rig.dir)).toEqual(before)
  })

  test('an open circuit is closed with a reset, since the operator says that it is mended', async () => {
    const circuit = { failures: 9, until: dueAt, lastError: error('GitHub is away.') }
    const circuits = { 'provider:github': circuit, 'repository:octo/other': circuit }
    await seed(ENTRIES, circuits)
    const dry = jsonOf(await rig.run('queue', 'reset', 'octo/app#7', '--dry-run', '--json'))
    expect(dry).toMatchObject({ dry_run: true, circuits_closed: ['provider:github'] })
    expect(await rig.run('queue', 'reset', 'octo/app#7')).toEqual({
      code: 0,
      stderr: '',
      stdout: `Octo/App#7 was failed and is queued again, as generation 1.
A new run begins; its attempts count from zero.
Closed, so that it may start: provider:github.
The next tick picks it up: caduceus run. The issue must be open and carry its label (${LABELS.code}) then.
`,
    })
    const store = openJsonStore({ clock: systemClock }, rig.layout.stateDir)
    expect(Object.keys(store.readQueue().circuits)).toEqual(['repository:octo/other'])
    expect(rig.entry(7)).toMatchObject({ phase: 'queued', attempts: 0, lastError: null })
  })
})

describe('how do reset and reprocess let an issue go on?', () => {
  let rig: ProgramRig

  afterEach(async () => {
    await rig.close()
  })

  /** A run that stopped after its worker had succeeded. */
  const stopAtForbiddenWord = async (): Promise<number> => {
    rig = await openProgramRig({ bridge: gatedBridge(FORBIDDEN_WORD) })
    openGate(rig)
    const number = await rig.openIssue()
    expect((await rig.tick()).stderr).toContain(`caduceus queue reset octo/app#${number}`)
    return number
  }

  test('after a forbidden word the paid work goes on: no second worker, one pull request', async () => {
    const number = await stopAtForbiddenWord()
    const { runId, treePath } = newestRun(rig)
    const shown = jsonOf(await rig.run('queue', 'show', `octo/app#${number}`, '--json'))
    expect(shown).toMatchObject({
      phase: 'needs_attention',
      blocked_source: 'publish/forbidden-word',
      last_run: {
        run_id: runId,
        claim_held: false,
        problem: null,
        journal: { stage: 'settled', ended_in: 'finished', outcome: 'blocked' },
        paths: { result: rig.layout.run(runId).result, tree: treePath },
      },
    })
    const before = fingerprintOf(rig.layout.stateDir)
    const dry = await rig.run('queue', 'reset', `octo/app#${number}`, '--dry-run')
    expect(dry).toMatchObject({ code: 0, stderr: '' })
    expect(dry.stdout.split('\n')).toEqual([
      expect.stringMatching(
        /^octo\/app#1 is needs_attention: attempts 0, last run 0\w+, last error: The /,
      ),
      'A reset would queue it again, as generation 1.',
      `Its run ${runId} goes on at the stage "finished", without another worker.`,
      'Nothing was changed.',
      '',
    ])
    expect(fingerprintOf(rig.layout.stateDir)).toEqual(before)

    rig.setConfig({ comment_forbidden_strings: ['gentle-ai'] })
    const reset = await rig.run('queue', 'reset', `octo/app#${number}`, '--json')
    expect({ ...reset, stdout: jsonOf(reset) }).toEqual({
      code: 0,
      stderr: '',
      stdout: {
        version: '1.0.0',
        issue: 'octo/app#1',
        phase_before: 'needs_attention',
        phase: 'queued',
        generation_before: 1,
        generation: 1,
        resumed_run: runId,
        dropped_run: null,
        dry_run: false,
        circuits_closed: [],
      },
    })
    expect(await refusalOf(rig, 'queue', 'reset', `octo/app#${number}`)).toMatch(
      /^octo\/app#1 is queued/,
    )
    expect(await rig.tick()).toEqual(QUIET)
    expect(starts(rig)).toBe(1)
    await expectPublishedOnce(rig, number)
    expect(rig.journals().map((journal) => journal.runId)).toEqual([runId])
  })

  test('a forced reset says what it gives up, and the worker runs again', async () => {
    const number = await stopAtForbiddenWord()
    const { runId, branch } = newestRun(rig)
    rig.setBridge(gatedBridge())
    const { code, stdout, stderr } = await rig.run(
      'queue',
      'reset',
      `octo/app#${number}`,
      '--force-finalization-reset',
    )
    expect(code).toBe(0)
    expect(stderr).toBe(
      `caduceus: The work of run ${runId} is given up: branch ${branch}, stage finished, pull request none, commit none. The remote branch and the pull request are not deleted.\n`,
    )
    expect(stdout).toContain(`A new run begins; nothing of run ${runId} goes on.\n`)
    expect(await rig.tick()).toEqual(QUIET)
    expect(starts(rig)).toBe(2)
    await expectPublishedOnce(rig, number)
    expect(newestRun(rig).runId).not.toBe(runId)
  })

  test('a failed issue is reprocessed as a new generation, and so is a done one once it is labelled', async () => {
    rig = await openProgramRig({ bridge: FAILING_BRIDGE, config: { max_retries_per_issue: 1 } })
    const number = await rig.openIssue()
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('failed')
    rig.setBridge(GOOD_BRIDGE)
    const { stdout } = await rig.run('queue', 'reprocess', `octo/app#${number}`)
    expect(stdout).toContain('octo/app#1 was failed and is queued again, as generation 1 → 2.\n')
    expect(await rig.tick()).toEqual(QUIET)
    await expectPublishedOnce(rig, number)
    expect(rig.entry(number)).toMatchObject({ generation: 2 })

    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('done')
    const again = jsonOf(await rig.run('queue', 'reprocess', `octo/app#${number}`, '--json'))
    expect(again).toMatchObject({ phase_before: 'done', generation_before: 2, generation: 3 })
    expect(rig.entry(number)).toMatchObject({ phase: 'queued', pull: null, attempts: 0 })
    rig.clock.advance(60_000)
    await rig.control('reopenIssue', { repo: rig.repo, number, actor: 'alice' })
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code, actor: 'alice' })
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      generation: 3,
      pull: { number: 3 },
    })
    expect(await branchesOf(rig)).toHaveLength(2)
  })

  test('an issue that is reset without its label is skipped before any worker', async () => {
    rig = await openProgramRig({ bridge: FAILING_BRIDGE, config: { max_retries_per_issue: 1 } })
    const number = await rig.openIssue()
    await rig.tick()
    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect((await rig.run('queue', 'reset', `octo/app#${number}`)).stdout).toContain(LABELS.code)
    await rig.tick()
    expect(rig.entry(number)).toMatchObject({ phase: 'skipped', attempts: 0 })
  })
})

describe('what becomes of a run when its issue is reprocessed?', () => {
  let rig: ProgramRig
  const issue = 'octo/app#1'

  beforeEach(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    await rig.openIssue()
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await startedWorkers(rig, 1)
  })
  afterEach(async () => {
    await rig.close()
  })

  test('a live run is never touched: the refusal names it and its process', async () => {
    const { runner } = await processesOfRun(rig)
    const { runId } = newestRun(rig)
    const alive = `${issue} is being worked on by the run ${runId} (process ${runner}). Wait for its end, or stop it by taking the label off the issue.`
    expect(await refusalOf(rig, 'queue', 'reprocess', issue)).toBe(alive)
    expect(await refusalOf(rig, 'queue', 'reprocess', issue, '--dry-run')).toBe(alive)
    expect(await refusalOf(rig, 'queue', 'reset', issue)).toContain('is in_progress, which')
    const { stdout } = await rig.run('queue', 'show', issue)
    expect(stdout).toContain(`    claim: held by process ${runner}\n`)
    expect(rig.entry(1)).toMatchObject({ phase: 'in_progress', generation: 1, runId })
    openGate(rig)
    await waitUntil('the issue is published', () => rig.entry(1)?.phase === 'awaiting_review')
    await expectPublishedOnce(rig, 1)
  })

  test.each([
    { last: 'runner', becomes: 'its supervisor ends the worker' },
    { last: 'supervisor', becomes: 'the worker that nobody keeps is ended' },
  ])('of a run whose $last died last $becomes, and a new run publishes once', async ({ last }) => {
    const { runner, supervisor, worker } = await processesOfRun(rig)
    const { runId, branch } = newestRun(rig)
    await killNow(runner, ...(last === 'supervisor' ? [supervisor] : []))
    expect(identifyProcess(worker)).not.toBeNull()

    const { code, stdout, stderr } = await rig.run('queue', 'reprocess', issue)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${issue} was in_progress and is queued again, as generation 1 → 2.
A new run begins; nothing of run ${runId} goes on.
The next tick picks it up: caduceus run. The issue must be open and carry its label (${LABELS.code}) then.
`,
    })
    expect(stderr).toContain(
      `The work of run ${runId} is given up: branch ${branch}, stage launching`,
    )
    expect([supervisor, worker].map((pid) => identifyProcess(pid))).toEqual([null, null])
    expect(newestRun(rig)).toMatchObject({ stage: 'settled', endedIn: 'launching' })
    expect(rig.entry(1)).toMatchObject({ phase: 'queued', generation: 2, runId: null })

    openGate(rig)
    expect(await rig.tick()).toEqual(QUIET)
    expect(starts(rig)).toBe(2)
    await expectPublishedOnce(rig, 1)
  })
})

describe('what becomes of a half-published run when its issue is reprocessed?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig()
    await rig.openIssue()
  })
  afterEach(async () => {
    await rig.close()
  })

  test('what is on GitHub is named and stays; nobody goes on with it', async () => {
    const route = 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments'
    const action = { kind: 'answer', status: 500 } as const
    await rig.control('addFault', { route, occurrence: 1, action })
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await waitUntil('the run waits', () => {
      const { notBefore, key } = newestRun(rig)
      return notBefore !== null && !isLocked(rig.layout.claim(key))
    })
    const { runId, branch, markers } = newestRun(rig)
    const shown = await rig.run('queue', 'show', 'octo/app#1')
    expect(shown.stdout).toContain('    open intent: commented, sent before ')
    expect(shown.stdout).toContain(
      `    commit: refs/runs/${runId} in ${rig.layout.directories.repos}`,
    )

    const { code, stderr } = await rig.run('queue', 'reprocess', 'octo/app#1')
    expect(code).toBe(0)
    expect(stderr).toContain(
      `The work of run ${runId} is given up: branch ${branch}, stage publishing, pull request #2, commit ${markers.committed}. `,
    )
    expect(stderr).toContain('close it first')
    expect(await branchesOf(rig)).toEqual([branch])
    await rig.control('closeIssue', { repo: rig.repo, number: 2 })
    rig.clock.advance(900_000)
    expect(await rig.tick()).toEqual(QUIET)
    expect(rig.entry(1)).toMatchObject({
      phase: 'awaiting_review',
      generation: 2,
      pull: { number: 3 },
    })
    expect(rig.journals().find((journal) => journal.runId === runId)).toMatchObject({
      stage: 'settled',
      endedIn: 'publishing',
      outcome: null,
      markers,
    })
  })
})

describe('may a change of the queue be killed, or wait?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({ bridge: gatedBridge() })
    openGate(rig)
  })
  afterEach(async () => {
    await rig.close()
  })

  /** Ticks, later than any wait each, until the issue is published. */
  const untilPublished = async (): Promise<void> => {
    for (let ticks = 0; ticks < 3 && rig.entry(1)?.phase !== 'awaiting_review'; ticks += 1) {
      rig.clock.advance(900_000)
      expect(await rig.tick()).toEqual(QUIET)
    }
    await expectPublishedOnce(rig, 1)
    expect(isLocked(rig.layout.claim({ owner: 'octo', name: 'app', number: 1 }))).toBe(false)
  }

  test.each([
    ['claims.take#1:before', 1],
    ['claims.take#1:after', 1],
    ['store.changeQueue#1:before', 1],
    ['store.changeQueue#1:after', 2],
    ['journals.write#1:before', 2],
    ['journals.write#1:after', 2],
  ] as const)(
    'a reprocess killed at %s leaves either the old run or the new one',
    async (place, workers) => {
      await rig.openIssue()
      expect(await crashAt(rig, 'runner', 'git.captureTree#1:after')).toEqual(QUIET)
      const { key } = newestRun(rig)
      await waitUntil('the runner is gone', () => !isLocked(rig.layout.claim(key)))
      expect(newestRun(rig).stage).toBe('finished')

      const crashed = await crashAt(rig, 'caduceus', place, ['queue', 'reprocess', 'octo/app#1'])
      expect(crashed.code).toBe(KILLED)
      await untilPublished()
      expect(starts(rig)).toBe(workers)
      expect(rig.entry(1)?.generation).toBe(workers)
    },
  )

  test.each(['claims.take#1:after', 'store.changeQueue#1:after'])(
    'a reset killed at %s can be given again, or has been done',
    async (place) => {
      rig.setBridge(gatedBridge(FORBIDDEN_WORD))
      await rig.openIssue()
      expect((await rig.tick()).code).toBe(1)
      rig.setConfig({ comment_forbidden_strings: ['gentle-ai'] })
      expect((await crashAt(rig, 'caduceus', place, ['queue', 'reset', 'octo/app#1'])).code).toBe(
        KILLED,
      )
      if (rig.entry(1)?.phase === 'needs_attention') {
        expect((await rig.run('queue', 'reset', 'octo/app#1')).code).toBe(0)
      }
      await untilPublished()
      expect(starts(rig)).toBe(1)
    },
  )

  test('a change waits for a tick that plans, and gives up after half a minute', async () => {
    rig.setBridge(FAILING_BRIDGE)
    rig.setConfig({ max_retries_per_issue: 1 })
    await rig.openIssue()
    await rig.tick()
    const lock = tryLock(rig.layout.tickLock)
    const waiting = rig.start('queue', 'reset', 'octo/app#1')
    try {
      // Looking needs no lock.
      expect((await rig.run('queue', 'reset', 'octo/app#1', '--dry-run')).code).toBe(0)
      expect((await rig.run('queue', 'show', 'octo/app#1')).stdout).toContain('is failed')
      let slept = 0
      const clock = {
        now: () => rig.clock.now(),
        sleep: async (ms: number) => {
          slept += ms
        },
      }
      await expect(waitForTickLock({ clock, layout: rig.layout })).rejects.toMatchObject({
        code: 'state/lock-busy',
      })
      expect(slept).toBe(30_000)
      expect(identifyProcess(waiting.pid)).not.toBeNull()
    } finally {
      lock?.close()
    }
    expect((await waiting.finished).code).toBe(0)
    expect(rig.entry(1)?.phase).toBe('queued')
  })
})
