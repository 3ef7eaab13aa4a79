import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { components } from '@octokit/openapi-types'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

type Pull = components['schemas']['pull-request']
type Event = Readonly<{ event: string; actor: { login: string }; commit_id: string | null }>

const repo = 'octo/app'

let github: TestGitHub
let gitPath: string

beforeAll(async () => {
  github = await startTestGitHub()
  gitPath = (await github.control('readRepository', { repo })).gitPath
})
afterAll(() => github.stop())

const git = (...args: string[]): string =>
  execFileSync('git', ['--git-dir', gitPath, ...args], { encoding: 'utf8' }).trim()

const create = (fields: object) =>
  github.request<Pull>('/repos/octo/app/pulls', {
    method: 'POST',
    body: { title: 'T', base: 'main', ...fields },
  })

/** A branch with one commit of its own, and a pull request from it by the daemon's account. */
async function openPull(branch: string, fields: object = {}): Promise<Pull> {
  const files = { [`${branch}.txt`]: 'one\ntwo\n' }
  await github.control('pushCommit', { repo, branch, files, author: 'automation-bot' })
  return (await create({ head: branch, ...fields })).body
}

const problems = (answer: Readonly<{ status: number; body: unknown }>) => [
  answer.status,
  answer.body,
]

describe('opening a pull request', () => {
  test('shows its branches, commits and size from the real repository', async () => {
    const pull = await openPull('first', { body: 'text' })
    expect(pull).toMatchObject({
      state: 'open',
      merged: false,
      mergeable: true,
      commits: 1,
      changed_files: 1,
      additions: 2,
      user: { login: 'automation-bot' },
      head: { ref: 'first', label: 'octo:first', sha: git('rev-parse', 'first') },
      base: { ref: 'main', sha: git('rev-parse', 'main'), repo: { full_name: repo } },
    })
    const files = await github.request(`/repos/octo/app/pulls/${pull.number}/files`)
    expect(files.body).toMatchObject([{ filename: 'first.txt', status: 'added', additions: 2 }])
    const commits = await github.request(`/repos/octo/app/pulls/${pull.number}/commits`)
    expect(commits.body).toMatchObject([
      {
        sha: pull.head.sha,
        commit: { message: 'Change files', author: { name: 'automation-bot' } },
      },
    ])
  })

  test('a second one from the same branch to the same base is refused', async () => {
    await openPull('twice')
    expect(problems(await create({ head: 'octo:twice' }))).toMatchObject([
      422,
      {
        message: 'Validation Failed',
        errors: [
          {
            resource: 'PullRequest',
            code: 'custom',
            message: 'A pull request already exists for octo:twice.',
          },
        ],
      },
    ])
  })

  test('without commits of its own it is refused', async () => {
    git('branch', 'same', 'main')
    expect(problems(await create({ head: 'same' }))).toMatchObject([
      422,
      { errors: [{ code: 'custom', message: 'No commits between main and same' }] },
    ])
  })

  test.each([
    [{ head: 'absent' }, { field: 'head', code: 'invalid' }],
    [{ head: 'stranger:first' }, { field: 'head', code: 'invalid' }],
    [{ head: '../../etc' }, { field: 'head', code: 'invalid' }],
    [
      { head: 'first', base: 'absent' },
      { field: 'base', code: 'invalid' },
    ],
    [{ base: 'main' }, { field: 'head', code: 'missing_field' }],
    [
      { head: 'first', title: '' },
      { field: 'title', code: 'missing_field' },
    ],
    [
      { head: 'first', title: 7 },
      { field: 'title', code: 'invalid' },
    ],
  ])('%j is refused', async (fields, problem) => {
    expect(problems(await create(fields))).toMatchObject([
      422,
      { errors: [{ resource: 'PullRequest', ...problem }] },
    ])
  })

  test('a body over 65,536 characters is refused', async () => {
    const files = { 'long.txt': 'x' }
    await github.control('pushCommit', { repo, branch: 'long', files })
    expect((await create({ head: 'long', body: 'x'.repeat(65_537) })).status).toBe(422)
    expect((await create({ head: 'long', body: 'x'.repeat(65_536) })).status).toBe(201)
  })
})

describe('listing pull requests', () => {
  test('filters by head and base; a head without an owner filters nothing', async () => {
    await openPull('topic/x')
    const heads = async (query: string) => {
      const { body } = await github.request<Pull[]>(`/repos/octo/app/pulls?${query}`)
      return body.map(({ head }) => head.ref)
    }
    const all = await heads('')
    expect(all.length).toBeGreaterThan(2)
    expect(await heads('head=octo:topic%2Fx')).toEqual(['topic/x'])
    expect(await heads('head=Octo:topic/x&base=main')).toEqual(['topic/x'])
    expect(await heads('head=other:topic/x')).toEqual([])
    expect(await heads('head=topic/x')).toEqual(all)
    expect(await heads('base=develop')).toEqual([])
    expect(await heads('sort=created&direction=asc')).toEqual([...all].reverse())
  })

  test('tells a fork’s branch from our own of the same name', async () => {
    await github.control('createRepository', { repo: 'fan/app', forkOf: repo })
    await github.control('pushCommit', { repo: 'fan/app', branch: 'first', files: { f: 'f' } })
    const order = { repo, title: 'F', body: null, head: 'fan:first', base: 'main', author: 'fan' }
    const { number } = await github.control('createPull', order)
    const { body } = await github.request<Pull>(`/repos/octo/app/pulls/${number}`)
    expect(body.head).toMatchObject({ label: 'fan:first', repo: { fork: true } })
    expect(body.head.repo.id).not.toBe(body.base.repo.id)
    expect(body.author_association).toBe('NONE')
  })
})

describe('an open pull request', () => {
  test('follows its branch, pushed by whomever and however', async () => {
    const pull = await openPull('moving')
    const folder = mkdtempSync(join(tmpdir(), 'clone-'))
    const run = (...args: string[]) => execFileSync('git', args, { cwd: folder, stdio: 'pipe' })
    run('clone', '--quiet', '--branch', 'moving', gitPath, '.')
    writeFileSync(join(folder, 'more.txt'), 'more\n')
    run('add', '.')
    run('-c', 'user.name=x', '-c', 'user.email=x@y', 'commit', '--quiet', '-m', 'more')
    run('push', '--quiet', 'origin', 'moving')
    rmSync(folder, { recursive: true })
    const { body } = await github.request<Pull>(`/repos/octo/app/pulls/${pull.number}`)
    expect(body.head.sha).toBe(git('rev-parse', 'moving'))
    expect(body.head.sha).not.toBe(pull.head.sha)
    expect([body.commits, body.changed_files]).toEqual([2, 2])
    const commits = await github.request(`/repos/octo/app/pulls/${pull.number}/commits`)
    expect(commits.body).toMatchObject([
      { sha: pull.head.sha, commit: { message: 'Change files' } },
      { sha: body.head.sha, commit: { message: 'more' }, parents: [{ sha: pull.head.sha }] },
    ])
    git('pack-refs', '--all')
    const again = await github.request<Pull>(`/repos/octo/app/pulls/${pull.number}`)
    expect(again.body.head.sha).toBe(body.head.sha)
  })

  test('is closed with its branch, and keeps its last commit', async () => {
    const pull = await openPull('doomed')
    await github.control('deleteBranch', { repo, branch: 'doomed' })
    const { body } = await github.request<Pull>(`/repos/octo/app/pulls/${pull.number}`)
    expect(body).toMatchObject({ state: 'closed', merged: false, head: { sha: pull.head.sha } })
    expect((await github.request('/repos/octo/app/branches/doomed')).status).toBe(404)
  })

  test('refuses to be merged by the API, and the request is on record', async () => {
    const pull = await openPull('unmerged')
    const path = `/repos/octo/app/pulls/${pull.number}/merge`
    expect((await github.request(path, { method: 'PUT', body: {} })).status).toBe(405)
    const route = 'PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge'
    const { entries } = await github.control('readRequests', { route })
    expect(entries).toMatchObject([{ method: 'PUT', path, status: 405, account: 'automation-bot' }])
    expect(git('rev-parse', 'main')).toBe(pull.base.sha)
  })
})

describe('merging', () => {
  test('makes a real commit and closes what the body promises, by the merger', async () => {
    const { numbers } = await github.control('createIssues', {
      repo,
      issues: [{ title: 'A' }, { title: 'B' }, { title: 'C' }],
    })
    const [a, b, c] = numbers
    const pull = await openPull('mend', {
      body: `Closes #${a}, but not \`fixes #${c}\`.\nResolves: octo/app#${b}`,
    })
    const merge = { repo, number: pull.number, actor: 'maintainer' }
    const { oid } = await github.control('mergePull', merge)
    expect(git('rev-parse', 'main')).toBe(oid)
    expect(git('log', '-1', '--format=%P %an', oid)).toBe(
      `${pull.base.sha} ${pull.head.sha} maintainer`,
    )
    expect(git('show', `${oid}:mend.txt`)).toBe('one\ntwo')
    const { body } = await github.request<Pull>(`/repos/octo/app/pulls/${pull.number}`)
    expect(body).toMatchObject({
      state: 'closed',
      merged: true,
      merge_commit_sha: oid,
      merged_by: { login: 'maintainer' },
      head: { sha: pull.head.sha },
      commits: 1,
    })
    const issue = await github.request(`/repos/octo/app/issues/${pull.number}`)
    expect(issue.body).toMatchObject({ pull_request: { merged_at: body.merged_at } })
    for (const number of [a, b]) {
      const { body } = await github.request<Event[]>(`/repos/octo/app/issues/${number}/events`)
      expect(body).toMatchObject([{ event: 'closed', actor: { login: 'maintainer' } }])
    }
    const states = numbers.map(
      async (number) => (await github.control('readIssue', { repo, number: number })).state,
    )
    expect(await Promise.all(states)).toEqual(['closed', 'closed', 'open'])
  })

  test('can squash, and closes what a commit promises', async () => {
    const { number } = await github.control('createIssue', { repo, title: 'D' })
    await github.control('pushCommit', {
      repo,
      branch: 'squashed',
      files: { 's.txt': 's' },
      message: `Mend\n\nFixes #${number}`,
    })
    const pull = (await create({ head: 'squashed' })).body
    const order = { repo, number: pull.number, method: 'squash' } as const
    const { oid } = await github.control('mergePull', order)
    expect(git('log', '-1', '--format=%P', oid)).toBe(pull.base.sha)
    const { body } = await github.request<Event[]>(`/repos/octo/app/issues/${number}/events`)
    expect(body).toMatchObject([{ event: 'closed', commit_id: pull.head.sha }])
  })

  test('into another branch than the default one closes nothing', async () => {
    const { number } = await github.control('createIssue', { repo, title: 'E' })
    git('branch', 'release', 'main')
    const pull = await openPull('side', { base: 'release', body: `Closes #${number}` })
    await github.control('mergePull', { repo, number: pull.number })
    expect((await github.control('readIssue', { repo, number })).state).toBe('open')
  })

  test('is refused on conflict', async () => {
    git('branch', 'before', 'main')
    await github.control('pushCommit', { repo, branch: 'main', files: { 'README.md': 'ours\n' } })
    const files = { 'README.md': 'theirs\n' }
    await github.control('pushCommit', { repo, branch: 'clash', from: 'before', files })
    const pull = (await create({ head: 'clash' })).body
    expect([pull.mergeable, pull.mergeable_state]).toEqual([false, 'dirty'])
    await expect(github.control('mergePull', { repo, number: pull.number })).rejects.toThrow(
      'it conflicts',
    )
  })
})
