import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { GitHub } from '../../daemon/core/ports.ts'
import { detailsOf } from '../support/faults.ts'
import {
  faultOf,
  type GitHubRig,
  openGitHubRig,
  startTestGitHub,
  type TestGitHub,
} from '../support/github-rig.ts'

const repo = 'octo/app'
const app = { owner: 'octo', name: 'app' } as const
const label = '🤖 auto-fix'

let server: TestGitHub
let rig: GitHubRig
const open = (change: Parameters<GitHubRig['open']>[0] = {}): GitHub =>
  rig.open({ apiBase: server.url, token: async () => server.token, ...change })
const requests = async (filter: { method?: string } = {}) => server.control('readRequests', filter)

beforeEach(async () => {
  rig = await openGitHubRig(() => undefined)
  server = await startTestGitHub()
})
afterEach(async () => {
  await server.stop()
  await rig.close()
})

const createIssue = async (title: string, labels: readonly string[] = []) => {
  const { number } = await server.control('createIssue', { repo, title, labels })
  return { ...app, number }
}
const branch = 'automation/issue-1-x'
const pushBranch = () => server.control('pushCommit', { repo, branch, files: { 'a.txt': 'a\n' } })
const pull = { title: 'Mend it', body: 'Closes #1', headBranch: branch, baseBranch: 'main' }

describe('the whole job against an embedded GitHub', () => {
  test('is done with what each operation says it does', async () => {
    const github = open()
    const viewer = await github.viewer()
    expect(viewer.login).toBe('automation-bot')
    const facts = await github.repository(app)
    expect(facts).toMatchObject({ name: app, defaultBranch: 'main', archived: false })

    const key = await createIssue('It breaks', [label, 'bug'])
    const poll = await github.pollLabel(app, label)
    expect(poll.issues).toEqual([
      expect.objectContaining({ number: 1, labels: [label, 'bug'], isOpen: true }),
    ])

    await pushBranch()
    const made = await github.createPullRequest(app, pull)
    expect(made).toMatchObject({
      kind: 'created',
      pull: { state: 'open', merged: false, headRepositoryId: facts?.id, authorId: viewer.id },
    })
    const comment = await github.createComment(key, 'Done <!-- m -->')
    expect((await github.comments(key)).value).toEqual([comment])
    expect(comment.authorId).toBe(viewer.id)
    await github.removeLabel(key, label)
    await github.removeLabel(key, label)
    await github.closeIssue(key)
    expect(await github.issue(key)).toMatchObject({
      isOpen: false,
      labels: ['bug'],
      commentCount: 1,
    })
    const events = (await github.timeline(key)).value
    const ours = events.filter(({ actorId }) => actorId === viewer.id)
    expect(ours.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['commented', 'unlabeled', 'closed']),
    )
    expect(ours.find(({ kind }) => kind === 'unlabeled')?.label).toBe(label)

    await github.deleteComment(app, comment.id)
    await github.deleteComment(app, comment.id)
    expect((await github.comments(key)).value).toEqual([])
  })

  test('sees a pull request merged by a human', async () => {
    await createIssue('It breaks')
    await pushBranch()
    const github = open()
    await github.createPullRequest(app, pull)
    expect(await github.pullRequest(app, 2)).toMatchObject({ state: 'open', merged: false })
    expect(await github.pullRequest(app, 2)).toMatchObject({ state: 'open' })
    await server.control('mergePull', { repo, number: 2 })
    expect(await github.pullRequest(app, 2)).toMatchObject({ state: 'closed', merged: true })
    expect((await github.pullRequestsByHead(app, branch)).value).toEqual([
      expect.objectContaining({ number: 2, merged: true }),
    ])
  })

  test('tells pull requests among the issues, which are none', async () => {
    await createIssue('It breaks', [label])
    await pushBranch()
    await server.control('createPull', { repo, title: 'P', body: null, head: branch, base: 'main' })
    await server.control('labelIssue', { repo, number: 2, label })
    const { issues } = await open().pollLabel(app, label)
    expect(new Map(issues.map(({ number, isPullRequest }) => [number, isPullRequest]))).toEqual(
      new Map([
        [1, false],
        [2, true],
      ]),
    )
  })
})

describe('an idle poll', () => {
  test('costs one request per repository, answered 304, also in the next process', async () => {
    await createIssue('It breaks', [label])
    const { serverTime } = await open().pollChanges(app, 0)
    await open().pollChanges(app, serverTime + 1000)
    await server.control('clearRequests')
    for (let tick = 0; tick < 3; tick += 1) {
      expect(await open().pollChanges(app, serverTime + 1000)).toMatchObject({ unchanged: true })
    }
    const { total, byStatus } = await requests()
    expect([total, byStatus]).toEqual([3, { 304: 3 }])
  })

  test('notices what changes after it', async () => {
    const key = await createIssue('It breaks', [label])
    const github = open()
    await github.pollLabel(app, label)
    expect((await github.pollLabel(app, label)).unchanged).toBe(true)
    await server.control('unlabelIssue', { repo, number: key.number, label })
    expect(await github.pollLabel(app, label)).toMatchObject({ unchanged: false, issues: [] })
  })

  test('finds the 101st issue though the first page answers 304', async () => {
    const issues = (count: number) =>
      Array.from({ length: count }, () => ({ title: 'x', labels: [label] }))
    await server.control('createIssues', { repo, issues: issues(100) })
    const github = open()
    expect((await github.pollChanges(app, 0)).issues).toHaveLength(100)
    await server.control('createIssues', { repo, issues: issues(1) })
    expect((await github.pollChanges(app, 0)).issues).toHaveLength(101)
    await server.control('createIssues', { repo, issues: issues(120) })
    const all = (await github.pollChanges(app, 0)).issues
    expect(new Set(all.map(({ number }) => number)).size).toBe(221)
    expect((await open().pollLabel(app, label)).issues).toHaveLength(221)
  })

  test('goes on under the old name of a renamed repository', async () => {
    const key = await createIssue('It breaks', [label])
    await server.control('renameRepository', { repo, to: 'octo/newname' })
    const github = open()
    expect((await github.pollLabel(app, label)).issues).toHaveLength(1)
    expect((await open().pollLabel(app, label)).unchanged).toBe(true)
    expect((await github.issue(key))?.movedTo).toEqual({
      owner: 'octo',
      name: 'newname',
      number: 1,
    })
    expect((await github.repository(app))?.name.name).toBe('newname')
    expect(await faultOf(github.closeIssue(key))).toMatchObject({
      code: 'github/moved',
      effect: 'none',
    })
    const { control } = server
    expect((await control('readIssue', { repo: 'octo/newname', number: 1 })).state).toBe('open')
  })
})

describe('an issue that is elsewhere', () => {
  test('moved, deleted and never there are told apart from failures', async () => {
    const [moved, deleted] = [await createIssue('one'), await createIssue('two')]
    await server.control('createRepository', { repo: 'octo/other' })
    await server.control('transferIssue', { repo, number: moved.number, to: 'octo/other' })
    await server.control('deleteIssue', { repo, number: deleted.number })
    const github = open()
    expect((await github.issue(moved))?.movedTo).toEqual({
      owner: 'octo',
      name: 'other',
      number: 1,
    })
    expect(await github.issue(deleted)).toBeNull()
    expect(await github.issue({ ...app, number: 99 })).toBeNull()
    expect(await github.repository({ owner: 'octo', name: 'nothing' })).toBeNull()
    expect((await faultOf(github.comments({ ...app, number: 99 }))).code).toBe('github/not-found')
  })
})

describe('writes that go wrong', () => {
  test('a comment that was stored before a 500 is sent once, with an unknown effect', async () => {
    const key = await createIssue('It breaks')
    const route = 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments'
    const broken = { kind: 'answer', status: 500, effect: true } as const
    await server.control('addFault', { route, occurrence: 1, action: broken })
    await server.control('addFault', {
      route,
      occurrence: 2,
      action: { kind: 'reset', effect: true },
    })
    const github = open()
    for (const code of ['github/failed', 'github/unreachable']) {
      expect(await faultOf(github.createComment(key, 'x'))).toMatchObject({
        code,
        effect: 'unknown',
      })
    }
    expect((await requests({ method: 'POST' })).total).toBe(2)
    expect((await github.comments(key)).value).toHaveLength(2)
  })

  test('a second pull request, one without commits and one without a branch', async () => {
    await createIssue('It breaks')
    await pushBranch()
    const github = open()
    await github.createPullRequest(app, pull)
    expect(await github.createPullRequest(app, pull)).toEqual({ kind: 'exists' })
    expect(
      await faultOf(github.createPullRequest(app, { ...pull, baseBranch: 'nowhere' })),
    ).toMatchObject({ code: 'github/refused', effect: 'none' })
    // A branch that was just pushed may not be seen yet.
    expect(
      await faultOf(github.createPullRequest(app, { ...pull, headBranch: 'nowhere' })),
    ).toMatchObject({ code: 'github/failed', effect: 'none' })
    expect(
      await github.createPullRequest(app, { ...pull, headBranch: 'main', baseBranch: branch }),
    ).toEqual({ kind: 'no-commits' })
  })

  test('a token that may only read', async () => {
    const key = await createIssue('It breaks')
    const { token } = await server.control('createToken', {
      login: 'automation-bot',
      permissions: { issues: 'read' },
    })
    const github = open({ token: async () => token })
    expect(await faultOf(github.createComment(key, 'x'))).toMatchObject({
      code: 'github/refused',
      effect: 'none',
      details: { status: 403 },
    })
    await server.control('revokeToken', { login: 'automation-bot' })
    expect((await faultOf(open().viewer())).code).toBe('token/rejected')
  })

  test.each([
    [{ kind: 'primary-limit', resetInSeconds: 900 }, 'primary', 901],
    [{ kind: 'secondary-limit' }, 'secondary', 60],
    [{ kind: 'secondary-limit', status: 429, retryAfterSeconds: 90 }, 'secondary', 90],
  ] as const)('%j holds everybody back for as long as it says', async (action, kind, seconds) => {
    await server.control('addFault', { occurrence: 1, action })
    const fault = await faultOf(open().viewer())
    expect(fault).toMatchObject({ code: 'github/rate-limited', details: { kind } })
    const waitMs = Number(detailsOf(fault)['untilMs']) - rig.time.now
    expect(Math.abs(waitMs - seconds * 1000)).toBeLessThanOrEqual(2000)
    expect((await faultOf(open().viewer())).code).toBe('github/rate-limited')
    expect((await requests()).total).toBe(1)
    rig.time.now += waitMs
    expect((await open().viewer()).login).toBe('automation-bot')
  })

  test('an enterprise server, whose API has a path', async () => {
    const key = await createIssue('It breaks', [label])
    const github = open({ apiBase: `${server.url}/api/v3/` })
    const issues = Array.from({ length: 100 }, () => ({ title: 'x', labels: [label] }))
    await server.control('createIssues', { repo, issues })
    expect((await github.pollLabel(app, label)).issues).toHaveLength(101)
    expect((await github.createComment(key, 'x')).body).toBe('x')
  })
})

test('what the token may reach is listed over all pages, without archived repositories', async () => {
  for (let at = 0; at < 101; at += 1) {
    await server.control('createRepository', { repo: `octo/r${at}`, files: null })
  }
  await server.control('editRepository', { repo: 'octo/r7', isArchived: true })
  const names = (await open().accessibleRepositories()).map(({ name }) => name)
  expect(names).toHaveLength(101)
  expect(names).toContain('app')
  expect(names).not.toContain('r7')
  expect((await requests()).total).toBe(2)
})
