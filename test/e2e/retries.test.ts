import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  bridge,
  type Finished,
  GOOD_BRIDGE,
  LABELS,
  openProgramRig,
  type ProgramRig,
} from '../support/program-rig.ts'
import { branchesOf, reportOf, treesOf, writesOf } from '../support/program-views.ts'

const SILENT: Finished = { code: 0, stdout: '', stderr: '' }

const FAILING_BRIDGE = bridge(`
open('app.txt', 'a').write('half-done\\n')
print('could not go on', flush=True)
sys.exit(3)`)

describe('is a failing worker tried again, but not for ever?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({
      bridge: FAILING_BRIDGE,
      config: { max_retries_per_issue: 2, retry_backoff_seconds: 300 },
    })
  })
  afterEach(async () => {
    await rig.close()
  })

  /** Moves the clock to so many milliseconds before (or after) the next attempt is due. */
  const goTo = (number: number, afterDueMs: number): void => {
    const due = Date.parse(rig.entry(number)?.nextAttemptAt ?? '')
    rig.clock.advance(due + afterDueMs - rig.clock.now())
  }

  test('attempts are counted, the backoff is kept, and a spent budget is told once with the transcript', async () => {
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual(SILENT)
    const [first] = rig.journals()
    const afterFirst = rig.entry(number)
    expect(afterFirst).toMatchObject({
      phase: 'queued',
      attempts: 1,
      lastError: { code: 'worker/exited', message: 'The worker ended with exit code 3.' },
    })
    const waitMs =
      Date.parse(afterFirst?.nextAttemptAt ?? '') - Date.parse(afterFirst?.updatedAt ?? '')
    expect(waitMs).toBeGreaterThanOrEqual(225_000)
    expect(waitMs).toBeLessThanOrEqual(300_000)
    const report = await reportOf(rig)
    expect(report.next_head).toBeNull()
    expect(report.next_head_earliest_eligibility).toBe(afterFirst?.nextAttemptAt)
    expect(report.recent_errors).toEqual([expect.stringContaining('exit code 3')])

    // The kept tree of a failed attempt is there until the next one begins.
    expect(treesOf(rig)).toEqual([first?.treePath])
    goTo(number, -120_000)
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toHaveLength(1)

    goTo(number, 1)
    const told = await rig.tick()
    const [, second] = rig.journals()
    const { transcript } = rig.layout.run(second?.runId ?? '')
    expect(second).toMatchObject({ attempt: 2 })
    expect(rig.entry(number)).toMatchObject({ phase: 'failed', attempts: 2, nextAttemptAt: null })
    expect(told).toEqual({
      code: 1,
      stdout: '',
      stderr: `caduceus: octo/app#1 needs attention: The worker ended with exit code 3. Its output is in ${transcript}. To try again: caduceus queue reset octo/app#1\n`,
    })
    expect(readFileSync(transcript, 'utf8')).toBe('could not go on\n')
    expect(treesOf(rig)).toEqual([second?.treePath])

    rig.clock.advance(2 * 3_600_000)
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toHaveLength(2)
    expect(await writesOf(rig)).toEqual([])
    const issue = await rig.control('readIssue', { repo: rig.repo, number })
    expect(issue).toMatchObject({ state: 'open', labels: [LABELS.code], comments: [] })
  })

  test('after a failure a success publishes once, and the count of failures does not matter any more', async () => {
    const number = await rig.openIssue()
    await rig.tick()
    rig.setBridge(GOOD_BRIDGE)
    goTo(number, 1)

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      attempts: 1,
      lastError: null,
    })
    expect(await branchesOf(rig)).toHaveLength(1)
    expect(await rig.git('-C', rig.origin, 'show', `${(await branchesOf(rig))[0]}:app.txt`)).toBe(
      'broken\nmended\n',
    )
    expect((await writesOf(rig)).filter((line) => line.startsWith('POST'))).toHaveLength(2)
    expect((await reportOf(rig)).recent_errors).toEqual([])
    expect(treesOf(rig)).toEqual([])
  })

  test('a label set anew by a human starts a new generation; a label that is merely there does not', async () => {
    rig.setConfig({ max_retries_per_issue: 1 })
    const number = await rig.openIssue()
    expect((await rig.tick()).code).toBe(1)
    expect(rig.entry(number)).toMatchObject({ phase: 'failed', attempts: 1 })

    // Whatever else happens to the issue is no new wish.
    await rig.control('commentIssue', { repo: rig.repo, number, actor: 'alice', body: 'Well?' })
    await rig.control('editIssue', { repo: rig.repo, number, actor: 'alice', body: 'Please.' })
    await rig.control('labelIssue', { repo: rig.repo, number, label: 'urgent' })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'failed', generation: 1 })

    rig.setBridge(GOOD_BRIDGE)
    rig.clock.advance(60_000)
    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)?.phase).toBe('failed')
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      generation: 2,
      attempts: 0,
      lastError: null,
    })
    expect(await branchesOf(rig)).toHaveLength(1)
    const [pull] = (await rig.control('listIssues', { repo: rig.repo })).slice(-1)
    expect(pull?.body).toMatch(/kind:pull-request generation:2 -->$/)
  })

  test('a published issue that is opened and labelled again gets a second pull request of its own', async () => {
    rig.setBridge(GOOD_BRIDGE)
    const number = await rig.openIssue()
    await rig.tick()
    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('done')
    rig.clock.advance(60_000)
    await rig.control('reopenIssue', { repo: rig.repo, number, actor: 'alice' })
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code, actor: 'alice' })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      generation: 2,
      pull: { number: 3 },
    })
    const branches = await branchesOf(rig)
    expect(branches).toHaveLength(2)
    const [issue, , pull] = await rig.control('listIssues', { repo: rig.repo })
    expect(issue).toMatchObject({ state: 'closed', labels: [] })
    expect(issue?.comments).toHaveLength(2)
    expect(pull).toMatchObject({ state: 'open', pull: { headBranch: branches.toSorted().at(-1) } })
    expect(await rig.git('-C', rig.origin, 'show', `${pull?.pull?.headBranch ?? ''}:app.txt`)).toBe(
      'broken\nmended\nmended\n',
    )
  })
})
