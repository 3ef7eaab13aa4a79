import { afterEach, describe, expect, test } from '@jest/globals'
import {
  BOT,
  type Finished,
  LABELS,
  openProgramRig,
  type ProgramRig,
  type RigOptions,
} from '../support/program-rig.ts'
import { describeRequest, readWorld, reportOf, writesOf } from '../support/program-views.ts'

const SILENT: Finished = { code: 0, stdout: '', stderr: '' }
/** The selector that asks for the colourful form; GitHub adds and drops it (case C12). */
const SELECTOR = '\uFE0F'

describe('which labels start a run, and are they taken off again?', () => {
  let rig: ProgramRig

  const open = async (options: RigOptions = {}): Promise<void> => {
    rig = await openProgramRig(options)
  }
  afterEach(async () => {
    await rig.close()
  })

  const issue = async (number: number) => rig.control('readIssue', { repo: rig.repo, number })

  test('both labels at once are ambiguous: nothing is claimed until one is removed', async () => {
    await open()
    const number = await rig.openIssue({ labels: [LABELS.code, LABELS.investigation] })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toBeUndefined()
    expect(rig.journals()).toEqual([])
    const { diagnostics, phases } = await reportOf(rig)
    expect(diagnostics).toEqual([
      expect.objectContaining({
        code: 'ambiguous-labels',
        issue: 'octo/app#1',
        message: 'Both trigger labels are set; remove one.',
      }),
    ])
    expect(Object.values(phases)).toEqual(Array(8).fill(0))
    expect((await rig.run('status')).stdout).toContain('octo/app#1: Both trigger labels are set')

    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'done', ticket: 'investigation' })
  })

  test('a queued issue that gets the other label too is not worked on until one of them is gone', async () => {
    await open({ config: { max_issues_per_tick: 1 } })
    await rig.openIssue()
    const number = await rig.openIssue()
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('queued')
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.investigation })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({
      phase: 'skipped',
      attempts: 0,
      lastError: { code: 'issue/ambiguous', message: 'octo/app#2 has both trigger labels.' },
    })
    expect(rig.journals().filter(({ base }) => base !== null)).toHaveLength(1)

    rig.clock.advance(60_000)
    await rig.control('unlabelIssue', { repo: rig.repo, number, label: LABELS.code })
    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'done', ticket: 'investigation' })
  })

  // Configured and as the issue has them, for each kind of ticket.
  const SPELLINGS = [
    {
      code: [LABELS.code, `🤖${SELECTOR} auto-fix`],
      investigation: [`🔎${SELECTOR} Look, please`, '🔎 look, PLEASE'],
    },
    {
      code: ['bots/auto 100%2F?#&+', 'bots/Auto 100%2F?#&+'],
      investigation: ['LOOK', 'look'],
    },
  ] as const

  test.each(SPELLINGS)(
    'labels are found and removed as the issue spells them: %j',
    async (labels) => {
      const [code, investigation] = [labels.code, labels.investigation]
      await open({
        config: {
          ticket_label_code: code[0],
          ticket_label_investigation: investigation[0],
          worker_parallelism: 2,
          max_runs_per_repo: 0,
        },
      })
      await rig.openIssue({ labels: [code[1], 'unrelated'] })
      await rig.openIssue({ labels: [investigation[1]] })
      rig.clock.advance(3 * 3_600_000) // not changed for long: only their labels show them

      expect(await rig.tick()).toEqual(SILENT)
      expect([1, 2].map((number) => rig.entry(number)?.phase)).toEqual(['awaiting_review', 'done'])
      expect((await issue(1)).labels).toEqual(['unrelated'])
      expect((await issue(2)).labels).toEqual([])
      expect(await writesOf(rig)).toEqual(
        expect.arrayContaining([
          `DELETE /repos/octo/app/issues/1/labels/${encodeURIComponent(code[1])}`,
          `DELETE /repos/octo/app/issues/2/labels/${encodeURIComponent(investigation[1])}`,
        ]),
      )
    },
  )

  test('a label that is gone when we remove it counts as removed', async () => {
    await open()
    const number = await rig.openIssue()
    await rig.control('addFault', {
      route: 'DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}',
      action: { kind: 'answer', status: 404, body: { message: 'Label does not exist' } },
    })

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.entry(number)).toMatchObject({ phase: 'awaiting_review', lastError: null })
    expect((await issue(number)).state).toBe('closed')
  })

  test('a pull request that carries the label is no issue: there is a note and no work', async () => {
    await open()
    await rig.control('pushCommit', {
      repo: rig.repo,
      branch: 'by-hand',
      files: { 'app.txt': 'by hand\n' },
    })
    const { number } = await rig.control('createPull', {
      repo: rig.repo,
      title: 'By hand',
      body: null,
      head: 'by-hand',
      base: 'main',
    })
    await rig.control('labelIssue', { repo: rig.repo, number, label: LABELS.code })
    const world = await readWorld(rig)

    expect(await rig.tick()).toEqual(SILENT)
    expect(rig.journals()).toEqual([])
    expect(rig.entry(number)).toBeUndefined()
    expect((await reportOf(rig)).diagnostics).toEqual([
      expect.objectContaining({
        code: 'pull-request-labelled',
        issue: `octo/app#${number}`,
        message: expect.stringContaining('only issues are worked on'),
      }),
    ])
    expect(await readWorld(rig)).toEqual(world)
  })

  test('comments, our own and those of other bots, never start anything', async () => {
    await open({ config: { remove_label_on_completion: false, close_issue: 'never' } })
    const number = await rig.openIssue()
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('awaiting_review')
    await rig.control('createAccount', { login: 'chatter[bot]', kind: 'Bot' })

    for (const actor of [BOT, 'chatter[bot]', 'alice']) {
      const body = `Again please. ${LABELS.code}`
      await rig.control('commentIssue', { repo: rig.repo, number, actor, body })
      await rig.control('commentIssue', { repo: rig.repo, number: 2, actor, body })
    }
    const world = await readWorld(rig)
    rig.clock.advance(120_000)
    expect(await rig.run('run', '--wait')).toEqual(SILENT) // asks for what has changed
    expect(await rig.tick()).toEqual(SILENT) // asks for the labels
    expect(await readWorld(rig)).toEqual(world)

    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    await rig.tick()
    await rig.control('commentIssue', { repo: rig.repo, number, actor: BOT, body: 'Again.' })
    await rig.tick()
    expect(rig.entry(number)).toMatchObject({ phase: 'done', generation: 1 })
    expect(rig.journals()).toHaveLength(1)
    const { entries } = await rig.control('readRequests', { method: 'POST' })
    expect(entries.map(describeRequest)).toHaveLength(2)
  })
})
