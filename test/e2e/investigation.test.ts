import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { BOT, bridge, LABELS, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  branchesOf,
  bridgeByIssue,
  readWorld,
  resultOf,
  treesOf,
  writesOf,
} from '../support/program-views.ts'

const FINDINGS = {
  summary: 'The cause is in `app.txt`.',
  artifacts: { suspects: ['app.txt'] },
}

const SHOWN_ARTIFACTS = `Artifacts (1):

\`\`\`json
{
  "suspects": [
    "app.txt"
  ]
}
\`\`\``

describe('does an investigation ticket end with findings, and with nothing else?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig({
      config: { worker_parallelism: 2, max_runs_per_repo: 0 },
    })
  })
  afterEach(async () => {
    await rig.close()
  })

  test('the findings become a comment, the label goes, the issue is closed; edits are told, not published', async () => {
    rig.setBridge(
      bridgeByIssue({
        1: resultOf(FINDINGS),
        2: `open('app.txt', 'w').write('mended')\nopen('more.txt', 'w').write('')\n${resultOf(FINDINGS)}`,
      }),
    )
    const readOnly = await rig.openIssue({ labels: [LABELS.investigation] })
    const editing = await rig.openIssue({ labels: [LABELS.investigation, 'bug'] })

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    const runs = new Map(rig.journals().map(({ key, runId }) => [key.number, runId]))
    const note =
      '\n\n*(2 edited file(s) were not published: this ticket asked for an investigation.)*'
    for (const [number, told] of [
      [readOnly, ''],
      [editing, note],
    ] as const) {
      expect(rig.entry(number)).toMatchObject({
        phase: 'done',
        ticket: 'investigation',
        pull: null,
      })
      const issue = await rig.control('readIssue', { repo: rig.repo, number })
      expect(issue).toMatchObject({ state: 'closed', closedBy: BOT })
      expect(issue.labels).toEqual(number === editing ? ['bug'] : [])
      expect(issue.comments.map(({ author, body }) => ({ author, body }))).toEqual([
        {
          author: BOT,
          body: `${FINDINGS.summary}${told}\n\n${SHOWN_ARTIFACTS}\n\n<!-- automation-run:${runs.get(number)} kind:findings generation:1 -->`,
        },
      ])
      const ours = issue.events.filter(({ actor }) => actor === BOT)
      expect(ours.map(({ kind }) => kind)).toEqual(['unlabeled', 'closed'])
    }
    const label = encodeURIComponent(LABELS.investigation)
    const writesFor = (number: number) => [
      `POST /repos/octo/app/issues/${number}/comments`,
      `DELETE /repos/octo/app/issues/${number}/labels/${label}`,
      `PATCH /repos/octo/app/issues/${number}`,
    ]
    const writes = await writesOf(rig)
    expect(writes).toHaveLength(6)
    expect(writes).toEqual(expect.arrayContaining([...writesFor(1), ...writesFor(2)]))
    expect(await branchesOf(rig)).toEqual([])
    expect(treesOf(rig)).toEqual([])

    const world = await readWorld(rig)
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await readWorld(rig)).toEqual(world)
  })

  test('with close_issue: never and the label kept, the issue stays as it is and is not taken up again', async () => {
    rig.setConfig({ close_issue: 'never', remove_label_on_completion: false })
    rig.setBridge(bridge(resultOf(FINDINGS)))
    const number = await rig.openIssue({ labels: [LABELS.investigation] })

    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('done')
    expect(await writesOf(rig)).toEqual(['POST /repos/octo/app/issues/1/comments'])
    const issue = await rig.control('readIssue', { repo: rig.repo, number })
    expect(issue).toMatchObject({ state: 'open', labels: [LABELS.investigation] })

    await rig.control('commentIssue', {
      repo: rig.repo,
      number,
      actor: 'alice',
      body: 'Thank you!',
    })
    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(rig.entry(number)).toMatchObject({ phase: 'done', generation: 1 })
    expect(rig.journals()).toHaveLength(1)
  })
})
