import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { components } from '@octokit/openapi-types'
import { closedIssues, mentionedIssues } from '../../embedded-github/issue-references.ts'
import { startTestGitHub, type TestGitHub } from '../support/github-rig.ts'

const repo = 'octo/app'

describe('issues and comments', () => {
  type Issue = components['schemas']['issue']
  type Comment = components['schemas']['issue-comment']
  type Event = Readonly<{
    id: number
    event: string
    actor: { login: string }
    label?: { name: string }
  }>

  const ROBOT = '🤖 auto-fix'
  const ODD = '100% a/b?'
  const START = Date.parse('2024-05-06T07:08:09.500Z')
  let now = START

  let github: TestGitHub

  beforeAll(async () => {
    github = await startTestGitHub(() => now)
    const { control } = github
    await control('createIssues', {
      repo,
      issues: [
        { title: 'One', body: 'first', labels: [ROBOT, 'bug'], author: 'stranger' },
        { title: 'Two', labels: [ROBOT, ODD] },
        { title: 'Three', labels: ['bug'] },
      ],
    })
    await control('pushCommit', { repo, branch: 'topic', files: { 'a.txt': 'a\n' } })
    await control('createPull', { repo, title: 'Four', body: null, head: 'topic', base: 'main' })
    await control('labelIssue', { repo, number: 4, label: ROBOT })
  })
  afterAll(() => github.stop())

  async function numbers(query: string): Promise<readonly number[]> {
    const { body } = await github.request<Issue[]>(`/repos/octo/app/issues?${query}`)
    return body.map(({ number }) => number)
  }

  describe('the list of issues', () => {
    test('has pull requests among the issues, marked as such', async () => {
      const { body } = await github.request<Issue[]>('/repos/octo/app/issues')
      expect(body.map(({ number }) => number)).toEqual([4, 3, 2, 1])
      expect(body[0]?.pull_request).toMatchObject({ merged_at: null })
      expect(body[1]?.pull_request).toBeUndefined()
    })

    test('needs every label of the filter, in any case, however odd their names are', async () => {
      const encoded = encodeURIComponent(ROBOT)
      expect(encoded).toBe('%F0%9F%A4%96%20auto-fix')
      expect(await numbers(`labels=${encoded}`)).toEqual([4, 2, 1])
      expect(await numbers(`labels=${encoded},BUG`)).toEqual([1])
      expect(await numbers(`labels=${encodeURIComponent(ODD)}`)).toEqual([2])
      expect(await numbers('labels=none')).toEqual([])
    })

    test('is sorted as asked, and narrowed by author', async () => {
      now += 5000
      await github.control('commentIssue', { repo, number: 2, body: 'Hm' })
      expect(await numbers('sort=updated')).toEqual([2, 4, 3, 1])
      expect(await numbers('sort=updated&direction=asc')).toEqual([1, 3, 4, 2])
      expect(await numbers('sort=comments')).toEqual([2, 4, 3, 1])
      expect(await numbers('direction=asc')).toEqual([1, 2, 3, 4])
      expect(await numbers('creator=Stranger')).toEqual([1])
    })

    test('includes the very second of since', async () => {
      now += 5000
      await github.control('labelIssue', { repo, number: 3, label: 'later' })
      const { body } = await github.request<Issue>('/repos/octo/app/issues/3')
      expect(body.updated_at).toBe('2024-05-06T07:08:19Z')
      expect(await numbers(`since=${body.updated_at}`)).toEqual([3])
      expect(await numbers('since=2024-05-06T07:08:20Z')).toEqual([])
    })

    test('shows open ones unless told otherwise', async () => {
      await github.control('closeIssue', { repo, number: 3 })
      expect(await numbers('')).toEqual([4, 2, 1])
      expect(await numbers('state=closed')).toEqual([3])
      expect(await numbers('state=all')).toEqual([4, 3, 2, 1])
    })
  })

  describe('an issue', () => {
    test('is closed and reopened by whoever asks, with events', async () => {
      now += 5000
      const path = '/repos/octo/app/issues/1'
      const closed = await github.request<Issue>(path, {
        method: 'PATCH',
        body: { state: 'closed', state_reason: 'completed' },
      })
      expect(closed.body).toMatchObject({
        state: 'closed',
        state_reason: 'completed',
        closed_at: '2024-05-06T07:08:24Z',
        updated_at: '2024-05-06T07:08:24Z',
        closed_by: { login: 'automation-bot' },
      })
      await github.request(path, { method: 'PATCH', body: { state: 'closed' } })
      await github.request(path, { method: 'PATCH', body: { state: 'open' } })
      const { body } = await github.request<Event[]>(`${path}/events`)
      expect(body.map(({ event, actor }) => [event, actor.login])).toEqual([
        ['labeled', 'stranger'],
        ['labeled', 'stranger'],
        ['closed', 'automation-bot'],
        ['reopened', 'automation-bot'],
      ])
      const ids = body.map(({ id }) => id)
      expect(ids).toEqual([...ids].sort((a, b) => a - b))
    })

    test('gets and loses labels; one it does not have answers 404', async () => {
      const path = '/repos/octo/app/issues/2/labels'
      const removed = await github.request(`${path}/${encodeURIComponent(ODD)}`, {
        method: 'DELETE',
      })
      expect([removed.status, removed.body]).toMatchObject([200, [{ name: ROBOT }]])
      const again = await github.request(`${path}/${encodeURIComponent(ODD)}`, { method: 'DELETE' })
      expect([again.status, again.body['message']]).toEqual([404, 'Label does not exist'])
      const added = await github.request(path, { method: 'POST', body: { labels: ['new one'] } })
      expect(added.body).toMatchObject([{ name: ROBOT }, { name: 'new one' }])
      const { body } = await github.request<Event[]>('/repos/octo/app/issues/2/timeline')
      expect(body.map(({ event, label }) => [event, label?.name]).slice(2)).toEqual([
        ['commented', undefined],
        ['unlabeled', ODD],
        ['labeled', 'new one'],
      ])
    })

    test('takes 65,536 characters of body and not one more, in issues and comments', async () => {
      const fits = '🤖'.repeat(65_536)
      const send = (path: string, body: object) => github.request(path, { method: 'POST', body })
      expect((await send('/repos/octo/app/issues', { title: 'Long', body: fits })).status).toBe(201)
      const tooLong = await send('/repos/octo/app/issues', { title: 'Long', body: `${fits}x` })
      expect([tooLong.status, tooLong.body]).toMatchObject([
        422,
        {
          message: 'Validation Failed',
          errors: [
            {
              resource: 'Issue',
              field: 'body',
              code: 'custom',
              message: 'body is too long (maximum is 65536 characters)',
            },
          ],
        },
      ])
      const comment = await send('/repos/octo/app/issues/1/comments', { body: `${fits}x` })
      expect([comment.status, comment.body]).toMatchObject([
        422,
        { errors: [{ resource: 'IssueComment', code: 'unprocessable', field: 'data' }] },
      ])
    })

    test('shows an overlay instead of its fields, for answers GitHub should not give', async () => {
      const issue = { repo, number: 2 }
      await github.control('editIssue', { ...issue, overlay: { title: null, number: 'two' } })
      const { body } = await github.request('/repos/octo/app/issues/2')
      expect(body).toMatchObject({ title: null, number: 'two', user: { login: 'maintainer' } })
      await github.control('editIssue', { ...issue, overlay: null })
      expect((await github.request('/repos/octo/app/issues/2')).body).toMatchObject({
        title: 'Two',
      })
    })

    test('knows who mentioned it, in a timeline entry without an id', async () => {
      await github.control('createIssue', { repo, title: 'Like #3', body: 'See #3, `#1` and #3' })
      const { body } = await github.request<Event[]>('/repos/octo/app/issues/3/timeline')
      const references = body.filter(({ event }) => event === 'cross-referenced')
      expect(references).toMatchObject([{ source: { issue: { title: 'Like #3' } } }])
      expect(references[0]).not.toHaveProperty('id')
      const { body: events } = await github.request<Event[]>('/repos/octo/app/issues/3/events')
      expect(events.some(({ event }) => event === 'cross-referenced')).toBe(false)
    })
  })

  describe('comments', () => {
    test('are created, read, listed since a second, and deleted', async () => {
      const path = '/repos/octo/app/issues/1/comments'
      const first = await github.request<Comment>(path, { method: 'POST', body: { body: 'a' } })
      expect([first.status, first.headers.get('location')]).toEqual([201, first.body.url])
      now += 3000
      const second = await github.request<Comment>(path, { method: 'POST', body: { body: 'b' } })
      expect(second.body).toMatchObject({
        body: 'b',
        user: { login: 'automation-bot' },
        author_association: 'COLLABORATOR',
      })
      expect(second.body.id).toBeGreaterThan(first.body.id)
      const since = await github.request<Comment[]>(`${path}?since=${second.body.created_at}`)
      expect(since.body.map(({ id }) => id)).toEqual([second.body.id])
      expect((await github.request(second.body.url)).body).toMatchObject({ body: 'b' })
      expect((await github.request(second.body.url, { method: 'DELETE' })).status).toBe(204)
      expect((await github.request(second.body.url)).status).toBe(404)
      const issue = await github.request<Issue>('/repos/octo/app/issues/1')
      expect(issue.body.comments).toBe(1)
    })
  })

  const here = { owner: 'octo', name: 'app' }

  describe('which issues a text closes', () => {
    test.each([
      ['Closes #1', [1]],
      ['closed #1, fixes #2; RESOLVED: #3', [1, 2, 3]],
      ['fix #1\nfixed #1', [1]],
      ['Closes octo/app#4', [4]],
      ['see #1', []],
      ['encloses #1', []],
      ['closes#1', []],
      ['closes #0', []],
      ['closes #1a', []],
      ['`closes #1` and ```\ncloses #2\n```', []],
      ['<!-- closes #1 -->', []],
    ])('%j', (text, numbers) => {
      expect(closedIssues(text, here).map(({ number }) => number)).toEqual(numbers)
    })

    test('one of another repository is not ours', () => {
      expect(closedIssues('Fixes other/thing#5', here)).toEqual([
        { owner: 'other', name: 'thing', number: 5 },
      ])
    })
  })

  describe('which issues a text mentions', () => {
    test.each([
      ['like #1 and octo/app#2', [1, 2]],
      ['(#3)', [3]],
      ['a#1 http://x/#2 &#3; ##4', []],
    ])('%j', (text, numbers) => {
      expect(mentionedIssues(text, here).map(({ number }) => number)).toEqual(numbers)
    })
  })
})

describe('pull requests', () => {
  type Pull = components['schemas']['pull-request']
  type Event = Readonly<{ event: string; actor: { login: string }; commit_id: string | null }>
  let gitPath: string

  let github: TestGitHub

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
      expect(entries).toMatchObject([
        { method: 'PUT', path, status: 405, account: 'automation-bot' },
      ])
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
})
