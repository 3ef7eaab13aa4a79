import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { components } from '@octokit/openapi-types'
import { closedIssues, mentionedIssues } from '../../daemon/demo/repositories.ts'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

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
const repo = 'octo/app'
const START = Date.parse('2024-05-06T07:08:09.500Z')

let github: TestGitHub
let now = START

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
    const removed = await github.request(`${path}/${encodeURIComponent(ODD)}`, { method: 'DELETE' })
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
    expect((await github.request('/repos/octo/app/issues/2')).body).toMatchObject({ title: 'Two' })
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
