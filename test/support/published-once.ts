import { expect } from '@jest/globals'
import { BOT, type ProgramRig } from './program-rig.ts'

/** Whatever happened on the way: one branch with one commit, one pull request, one comment, one close. */
export async function expectPublishedOnce(rig: ProgramRig, number: number): Promise<void> {
  const entry = rig.entry(number)
  expect(entry).toMatchObject({ phase: 'awaiting_review', attempts: 0, runId: null })
  const issues = await rig.control('listIssues', { repo: rig.repo })
  const issue = issues.find((one) => one.number === number)
  expect(issue).toMatchObject({ state: 'closed', labels: [], closedBy: BOT })
  expect(issue?.comments.map(({ author }) => author)).toEqual([BOT])
  const ours = issue?.events.filter(({ actor }) => actor === BOT).map(({ kind }) => kind)
  expect(ours?.sort()).toEqual(['closed', 'cross-referenced', 'unlabeled'])

  const prefix = `automation/issue-${number}-`
  const pulls = issues.filter(({ pull }) => pull?.headBranch.startsWith(prefix))
  expect(pulls.map((pull) => [pull.number, pull.state])).toEqual([[entry?.pull?.number, 'open']])
  const { branches } = await rig.control('readRepository', { repo: rig.repo })
  const [branch, ...others] = Object.keys(branches).filter((name) => name.startsWith(prefix))
  expect({ branch, others }).toEqual({ branch: pulls[0]?.pull?.headBranch, others: [] })
  const count = await rig.git('-C', rig.origin, 'rev-list', '--count', `main..${branch}`)
  expect(count).toBe('1\n')
}
