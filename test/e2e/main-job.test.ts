import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { BOT, openProgramRig, type ProgramRig } from '../support/program-rig.ts'

describe('does a labelled issue become a pull request?', () => {
  let rig: ProgramRig

  beforeEach(async () => {
    rig = await openProgramRig()
  })
  afterEach(async () => {
    await rig.close()
  })

  test('one run makes one branch, one commit, one pull request and one comment, then closes the issue', async () => {
    const number = await rig.openIssue()

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })

    expect(rig.entry(number)).toMatchObject({
      phase: 'awaiting_review',
      attempts: 0,
      lastError: null,
    })
    const [issue, pull] = await rig.control('listIssues', { repo: rig.repo })
    expect(issue).toMatchObject({ state: 'closed', labels: [], closedBy: BOT })
    expect(issue?.comments).toHaveLength(1)
    expect(pull).toMatchObject({ author: BOT, title: 'fix(app): mend it', state: 'open' })
    expect(pull?.body).toMatch(/^Closes #1\n/)
    const branch = pull?.pull?.headBranch ?? ''
    expect(branch).toMatch(/^automation\/issue-1-[0-9a-z]{26}$/)
    const files = await rig.git('-C', rig.origin, 'diff', '--name-only', 'main', branch)
    expect(files).toBe('app.txt\n')
    expect(await rig.git('-C', rig.origin, 'rev-list', '--count', `main..${branch}`)).toBe('1\n')
    const author = await rig.git('-C', rig.origin, 'log', '-1', '--format=%an <%ae>', branch)
    expect(author).toBe('Caduceus Daemon <caduceus@daemon.local>\n')
  })

  test('a further run changes nothing, and a merge ends the issue as done', async () => {
    const number = await rig.openIssue()
    await rig.tick()
    const before = await rig.control('listIssues', { repo: rig.repo })

    expect(await rig.tick()).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await rig.control('listIssues', { repo: rig.repo })).toEqual(before)

    await rig.control('mergePull', { repo: rig.repo, number: 2 })
    await rig.tick()
    expect(rig.entry(number)?.phase).toBe('done')
  })
})
