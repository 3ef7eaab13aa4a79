import { describe, expect, test } from '@jest/globals'
import {
  commentJson,
  faultOf,
  type GitHubRig,
  ISSUE,
  issueJson,
  pullJson,
  REPOSITORY,
  rigOpener,
} from '../support/github-rig.ts'
import { replyJson } from '../support/scripted-server.ts'

const rig = rigOpener()
const answering = (status: number, body: unknown): Promise<GitHubRig> =>
  rig((_, response) =>
    body === undefined ? response.writeHead(status).end() : replyJson(response, status, body),
  )

const at = (text: string): number => Date.parse(text)

describe('how an issue is read', () => {
  test('with everything', async () => {
    const { open } = await answering(
      200,
      issueJson(7, { comments: 3, labels: ['a', { name: 'b' }, { id: 1 }, null] }),
    )
    expect(await open().issue(ISSUE)).toEqual({
      number: 7,
      title: 'Issue 7',
      body: 'text',
      author: 'alice',
      labels: ['a', 'b'],
      isOpen: true,
      isPullRequest: false,
      mergedAt: null,
      updatedAt: at('2026-01-02T03:04:05Z'),
      commentCount: 3,
      movedTo: null,
    })
  })

  test('with nothing that may be missing', async () => {
    const empty = { title: null, body: null, user: null, labels: null, comments: null }
    const { open } = await answering(200, issueJson(7, { ...empty, repository_url: undefined }))
    expect(await open().issue(ISSUE)).toMatchObject({
      title: '',
      body: '',
      author: null,
      labels: [],
      commentCount: 0,
      movedTo: null,
    })
  })

  test('closed, and a merged pull request in truth', async () => {
    const pull = { state: 'closed', pull_request: { merged_at: '2026-01-03T00:00:00Z' } }
    const { open } = await answering(200, issueJson(7, pull))
    expect(await open().issue(ISSUE)).toMatchObject({
      isOpen: false,
      isPullRequest: true,
      mergedAt: at('2026-01-03T00:00:00Z'),
    })
  })

  test.each([
    [
      'the page address when the API address is missing',
      { repository_url: null, html_url: 'https://example.org/other/place/issues/7' },
    ],
    ['an API address below a path', { repository_url: 'https://h/api/v3/repos/other/place' }],
  ])('moved, by %s', async (_, change) => {
    const { open } = await answering(200, issueJson(7, change))
    expect((await open().issue(ISSUE))?.movedTo).toEqual({ owner: 'other', name: 'place' })
  })

  test('that is no issue is a bad answer', async () => {
    for (const body of [{}, [], null, issueJson(0), issueJson(7, { updated_at: 'x' })]) {
      const { open } = await answering(200, body)
      expect((await faultOf(open().issue(ISSUE))).code).toBe('github/bad-answer')
    }
  })
})

describe('how the rest is read', () => {
  test('comments, newest change and author included', async () => {
    const { open, server } = await answering(200, [
      commentJson(5),
      commentJson(6, { user: null, body: null, author_association: null }),
    ])
    const { value } = await open().comments(ISSUE, at('2026-01-01T00:00:00.900Z'))
    expect(value).toEqual([
      {
        id: 5,
        author: 'alice',
        authorId: 1,
        authorAssociation: 'OWNER',
        body: 'comment 5',
        createdAt: at('2026-01-02T03:04:05Z'),
        updatedAt: at('2026-01-02T03:04:06Z'),
      },
      expect.objectContaining({
        id: 6,
        author: null,
        authorId: null,
        authorAssociation: 'NONE',
        body: '',
      }),
    ])
    expect(server.seen[0]?.url).toContain('since=2026-01-01T00%3A00%3A00Z')
  })

  test('a list with one unreadable comment proves nothing and is a bad answer', async () => {
    const { open } = await answering(200, [commentJson(5), { body: 'no id' }])
    expect((await faultOf(open().comments(ISSUE))).code).toBe('github/bad-answer')
  })

  test('every timeline event, whatever it lacks', async () => {
    const { open } = await answering(200, [
      {
        id: 1,
        event: 'labeled',
        actor: { login: 'alice', id: 1 },
        created_at: '2026-01-01T00:00:00Z',
        label: { name: 'bot' },
      },
      { event: 'committed', sha: 'x', committer: { date: '2026-01-02T00:00:00Z' } },
      {
        id: 3,
        event: 'reviewed',
        user: { login: 'bob', id: 2 },
        submitted_at: '2026-01-03T00:00:00Z',
      },
      { event: 'cross-referenced', actor: null, created_at: '2026-01-04T00:00:00Z' },
      { id: 5, event: 'a-new-kind' },
      17,
    ])
    const { value } = await open().timeline(ISSUE)
    const none = { id: 0, actor: null, actorId: null, label: null }
    expect(value).toEqual([
      {
        id: 1,
        kind: 'labeled',
        actor: 'alice',
        actorId: 1,
        createdAt: at('2026-01-01'),
        label: 'bot',
      },
      { ...none, kind: 'committed', createdAt: at('2026-01-02') },
      { ...none, id: 3, kind: 'reviewed', actor: 'bob', actorId: 2, createdAt: at('2026-01-03') },
      { ...none, kind: 'cross-referenced', createdAt: at('2026-01-04') },
      { ...none, id: 5, kind: 'a-new-kind', createdAt: 0 },
      { ...none, kind: 'unknown', createdAt: 0 },
    ])
  })

  test('a repository', async () => {
    const body = { id: 42, full_name: 'Octo/Hello', default_branch: 'develop', archived: true }
    const { open } = await answering(200, body)
    expect(await open().repository(REPOSITORY)).toEqual({
      id: 42,
      name: { owner: 'Octo', name: 'Hello' },
      defaultBranch: 'develop',
      archived: true,
    })
    for (const change of [
      { id: 0 },
      { full_name: 'x' },
      { full_name: '../x' },
      { default_branch: null },
    ]) {
      const { open } = await answering(200, { ...body, ...change })
      expect((await faultOf(open().repository(REPOSITORY))).code).toBe('github/bad-answer')
    }
  })

  test.each([
    ['open', {}, { state: 'open', merged: false }],
    [
      'merged, in a list',
      { state: 'closed', merged_at: '2026-01-01T00:00:00Z' },
      { state: 'closed', merged: true },
    ],
    ['merged, alone', { state: 'closed', merged: true }, { state: 'closed', merged: true }],
    [
      'from a deleted fork',
      { head: { ref: 'h', sha: 's', repo: null } },
      { headRepositoryId: null },
    ],
    ['without an author', { user: null }, { authorId: null }],
  ])('a pull request that is %s', async (_, change, wanted) => {
    const { open } = await answering(200, pullJson(3, change))
    expect(await open().pullRequest(REPOSITORY, 3)).toMatchObject({
      number: 3,
      url: 'https://example.org/octo/hello/pull/3',
      baseBranch: 'develop',
      body: '',
      ...wanted,
    })
  })

  test('pull requests by head: of any state, with the owner in the filter', async () => {
    const { open, server } = await answering(200, [pullJson(3), pullJson(4)])
    const { value } = await open().pullRequestsByHead(REPOSITORY, 'automation/issue-7-x')
    expect(value.map(({ number, headRepositoryId }) => [number, headRepositoryId])).toEqual([
      [3, 42],
      [4, 42],
    ])
    expect(server.seen[0]?.url).toBe(
      '/repos/octo/hello/pulls?state=all&head=octo%3Aautomation%2Fissue-7-x&per_page=100',
    )
  })
})
