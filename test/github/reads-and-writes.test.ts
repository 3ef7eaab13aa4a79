import { describe, expect, test } from '@jest/globals'
import { formatIssue } from '../../daemon/core/issue-key.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { GitHub } from '../../daemon/core/ports.ts'
import { STATUS_FAULTS } from '../../daemon/github/request-fault.ts'
import { detailsOf } from '../support/faults.ts'
import {
  commentJson,
  faultOf,
  type GitHubRig,
  ISSUE,
  issueJson,
  pullJson,
  REPOSITORY,
  replyJson,
  rigOpener,
  type Script,
} from '../support/github-rig.ts'

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

  test.each<[string, object, string]>([
    [
      'the page address when the API address is missing',
      { repository_url: null, html_url: 'https://example.org/other/place/issues/7' },
      'other/place#7',
    ],
    [
      'an API address below a path',
      { repository_url: 'https://h/api/v3/repos/other/place' },
      'other/place#7',
    ],
    ['another number in the same repository', { number: 8 }, 'octo/hello#8'],
  ])('moved, by %s', async (_, change, wanted) => {
    const { open } = await answering(200, issueJson(7, change))
    const movedTo = (await open().issue(ISSUE))?.movedTo ?? null
    expect(movedTo === null ? null : formatIssue(movedTo)).toBe(wanted)
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
      {
        event: 'cross-referenced',
        actor: null,
        created_at: '2026-01-04T00:00:00Z',
        source: {
          issue: {
            number: 9,
            state: 'open',
            title: 'mend',
            body: 'Fixes #7',
            user: { login: 'bob' },
            repository_url: 'https://api.github.com/repos/octo/other',
            pull_request: {},
          },
        },
      },
      { id: 5, event: 'a-new-kind' },
      17,
    ])
    const { value } = await open().timeline(ISSUE)
    const none = { id: 0, actor: null, actorId: null, label: null, pull: null }
    expect(value).toEqual([
      {
        id: 1,
        kind: 'labeled',
        actor: 'alice',
        actorId: 1,
        createdAt: at('2026-01-01'),
        label: 'bot',
        pull: null,
      },
      { ...none, kind: 'committed', createdAt: at('2026-01-02') },
      { ...none, id: 3, kind: 'reviewed', actor: 'bob', actorId: 2, createdAt: at('2026-01-03') },
      {
        ...none,
        kind: 'cross-referenced',
        createdAt: at('2026-01-04'),
        pull: {
          repository: { owner: 'octo', name: 'other' },
          number: 9,
          isOpen: true,
          author: 'bob',
          title: 'mend',
          body: 'Fixes #7',
        },
      },
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

const PULL = { title: 't', body: 'b', headBranch: 'h', baseBranch: 'main' }
const READS: Readonly<Record<string, (github: GitHub) => Promise<unknown>>> = {
  viewer: (github) => github.viewer(),
  repository: (github) => github.repository(REPOSITORY),
  pollLabel: (github) => github.pollLabel(REPOSITORY, 'bot'),
  pollChanges: (github) => github.pollChanges(REPOSITORY, 0),
  issue: (github) => github.issue(ISSUE),
  comments: (github) => github.comments(ISSUE),
  timeline: (github) => github.timeline(ISSUE),
  pullRequest: (github) => github.pullRequest(REPOSITORY, 1),
  pullRequestsByHead: (github) => github.pullRequestsByHead(REPOSITORY, 'b'),
}
const WRITES: typeof READS = {
  createPullRequest: (github) => github.createPullRequest(REPOSITORY, PULL),
  createComment: (github) => github.createComment(ISSUE, 'x'),
  deleteComment: (github) => github.deleteComment(REPOSITORY, 3),
  removeLabel: (github) => github.removeLabel(ISSUE, 'bot'),
  closeIssue: (github) => github.closeIssue(ISSUE),
}
const NULL_WHEN_ABSENT = ['repository', 'issue', 'pullRequest']

// What each status means, and whether a write that got it may have been done (P§3).
const STATUSES = [
  [304, 'github/failed', 'none'],
  [400, 'github/refused', 'none'],
  [401, 'token/rejected', 'none'],
  [403, 'github/refused', 'none'],
  [404, 'github/not-found', 'none'],
  [408, 'github/failed', 'unknown'],
  [409, 'github/refused', 'none'],
  [410, 'github/not-found', 'none'],
  [422, 'github/refused', 'none'],
  [429, 'github/rate-limited', 'unknown'],
  [451, 'github/refused', 'none'],
  [500, 'github/failed', 'unknown'],
  [502, 'github/failed', 'unknown'],
  [503, 'github/failed', 'unknown'],
] as const

describe('what a status means', () => {
  test.each(STATUSES)('%s to a read is %s', async (status, code, _effect) => {
    const { open, gate } = await rig((_, response) =>
      replyJson(response, status, { message: 'why' }),
    )
    for (const [name, read] of Object.entries(READS)) {
      gate.wait = null
      const isAbsence = (status === 404 || status === 410) && NULL_WHEN_ABSENT.includes(name)
      if (isAbsence) {
        expect([name, await read(open())]).toEqual([name, null])
        continue
      }
      const fault = await faultOf(read(open()))
      expect([name, fault.code]).toEqual([name, code])
      expect(fault).not.toHaveProperty('effect')
      expect(fault.message).not.toContain('?')
    }
  })

  test.each(STATUSES)(
    '%s to a write is %s, effect %s, and is not sent again',
    async (status, code, effect) => {
      const { open, gate, server } = await rig((_, response) =>
        replyJson(response, status, { message: 'why' }),
      )
      for (const [name, write] of Object.entries(WRITES)) {
        gate.wait = null
        server.seen.length = 0
        const isAlreadyGone = (status === 404 || status === 410) && name === 'deleteComment'
        if (isAlreadyGone) {
          await write(open())
          continue
        }
        const fault = await faultOf(write(open()))
        expect({ name, code: fault.code, fault }).toMatchObject({ name, code, fault: { effect } })
        expect(fault.message).not.toContain('?')
        expect(server.seen).toHaveLength(1)
      }
    },
  )

  test('every status from 300 on has a row', () => {
    for (let status = 300; status <= 999; status += 1) {
      expect(STATUS_FAULTS.some((row) => status >= row.from && status <= row.to)).toBe(true)
    }
  })
})

describe('what of an answer is shown', () => {
  const shownFor = async (script: Script): Promise<unknown> => {
    const { open } = await rig(script)
    return detailsOf(await faultOf(open().createComment(ISSUE, 'x')))['reason']
  }

  test("GitHub's message and those of its errors", async () => {
    const body = {
      message: 'Validation Failed',
      errors: [{ message: 'too long' }, { code: 'x' }, 'y', 4],
    }
    expect(await shownFor((_, response) => replyJson(response, 422, body))).toBe(
      'Validation Failed: too long: x: y',
    )
  })

  test('one line of bounded length', async () => {
    const body = { message: `a\n\tb${'🤖'.repeat(5000)}` }
    const reason = String(await shownFor((_, response) => replyJson(response, 500, body)))
    expect(reason).toMatch(/^a b🤖+…$/u)
    expect(Array.from(reason)).toHaveLength(LIMITS.httpReasonCharacters + 1)
  })

  test.each(['<html>Unicorn!</html>', '', 'null', '[]', '{"message":5}'])(
    'nothing of %j',
    async (body) => {
      expect(await shownFor((_, response) => response.writeHead(502).end(body))).toBe(
        'no explanation',
      )
    },
  )

  test('no secret that GitHub repeats', async () => {
    const token = ['gh', 'p_', 'a'.repeat(36)].join('')
    expect(
      await shownFor((_, response) => replyJson(response, 500, { message: `with ${token}` })),
    ).toBe('with <redacted>')
  })

  test('a refusal whose explanation is cut off is still a refusal', async () => {
    const { open } = await rig((_, response) => {
      response.writeHead(422, { 'content-type': 'application/json', 'content-length': '500' })
      response.write('{"mess', () => setImmediate(() => response.destroy()))
    })
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/refused',
      effect: 'none',
      details: { reason: 'no explanation' },
    })
  })
})

describe('how a write is made', () => {
  const answering = (status: number, body: unknown): Promise<GitHubRig> =>
    rig((_, response) =>
      body === undefined ? response.writeHead(status).end() : replyJson(response, status, body),
    )

  const pull = { title: 'T', body: 'B', headBranch: 'h', baseBranch: 'develop' }

  test('a pull request', async () => {
    const { open, server } = await answering(201, pullJson(3))
    expect(await open().createPullRequest(REPOSITORY, pull)).toMatchObject({
      kind: 'created',
      pull: { number: 3 },
    })
    expect(server.seen[0]).toMatchObject({ method: 'POST', url: '/repos/octo/hello/pulls' })
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      title: 'T',
      body: 'B',
      head: 'h',
      base: 'develop',
    })
  })

  test.each([
    ['exists', 'A pull request already exists for octo:h.'],
    ['no-commits', 'No commits between develop and h'],
  ])('a pull request that GitHub does not make: %s', async (kind, message) => {
    const { open } = await answering(422, { message: 'Validation Failed', errors: [{ message }] })
    expect(await open().createPullRequest(REPOSITORY, pull)).toEqual({ kind })
  })

  test('a pull request that GitHub refuses for another reason', async () => {
    const errors = [{ resource: 'PullRequest', field: 'base', code: 'invalid' }]
    const { open } = await answering(422, { message: 'Validation Failed', errors })
    expect(await faultOf(open().createPullRequest(REPOSITORY, pull))).toMatchObject({
      code: 'github/refused',
      effect: 'none',
      details: { reason: 'Validation Failed: invalid' },
    })
  })

  test('a pull request of a branch that GitHub does not know yet may be tried again', async () => {
    const errors = [{ resource: 'PullRequest', field: 'head', code: 'invalid' }]
    const { open } = await answering(422, { message: 'Validation Failed', errors })
    expect(await faultOf(open().createPullRequest(REPOSITORY, pull))).toMatchObject({
      code: 'github/failed',
      effect: 'none',
      details: { status: 422, reason: 'Validation Failed: invalid' },
    })
  })

  test('a comment', async () => {
    const { open, server } = await answering(201, commentJson(5))
    expect((await open().createComment(ISSUE, 'héllo 🤖')).id).toBe(5)
    expect(server.seen[0]).toMatchObject({
      method: 'POST',
      url: '/repos/octo/hello/issues/7/comments',
      body: '{"body":"héllo 🤖"}',
    })
  })

  test.each([
    ['not JSON', 'oops'],
    ['nothing', ''],
    ['another thing', '{}'],
  ])('what was made but is answered with %s may exist', async (_, body) => {
    const { open, server } = await rig((_request, response) => response.writeHead(201).end(body))
    for (const call of [
      open().createComment(ISSUE, 'x'),
      open().createPullRequest(REPOSITORY, pull),
    ]) {
      expect(await faultOf(call)).toMatchObject({
        code: 'github/bad-answer',
        effect: 'unknown',
      })
    }
    expect(server.seen).toHaveLength(2)
  })

  test('what was made but whose answer is cut off may exist', async () => {
    const { open } = await rig((_, response) => {
      response.writeHead(201, { 'content-type': 'application/json' })
      response.write('{"id":', () => setImmediate(() => response.destroy()))
    })
    expect(await faultOf(open().createComment(ISSUE, 'x'))).toMatchObject({
      code: 'github/bad-answer',
      effect: 'unknown',
      details: { reason: 'the body was cut off' },
    })
  })

  test('a close, which needs no readable answer', async () => {
    const { open, server } = await rig((_, response) => {
      response.writeHead(200)
      response.write('{', () => setImmediate(() => response.destroy()))
    })
    await open().closeIssue(ISSUE)
    expect(server.seen[0]).toMatchObject({ method: 'PATCH', url: '/repos/octo/hello/issues/7' })
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      state: 'closed',
      state_reason: 'completed',
    })
  })

  test.each(['closeIssue', 'removeLabel', 'deleteComment'])(
    'a %s that is answered with a page was perhaps not made: the page is not from GitHub',
    async (name) => {
      const { open } = await rig((_, response) => {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>')
      })
      expect(await faultOf(WRITES[name]?.(open()) ?? Promise.resolve())).toMatchObject({
        code: 'github/bad-answer',
        effect: 'unknown',
      })
    },
  )

  test.each([
    [204, undefined],
    [404, { message: 'Not Found' }],
  ])('a deletion of a comment that is answered %s', async (status, body) => {
    const { open, server } = await answering(status, body)
    await open().deleteComment(REPOSITORY, 5)
    expect(server.seen[0]).toMatchObject({
      method: 'DELETE',
      url: '/repos/octo/hello/issues/comments/5',
      body: '',
    })
  })

  test.each([
    ['🤖 auto-fix', '%F0%9F%A4%96%20auto-fix'],
    ['a/b', 'a%2Fb'],
    ["50% o'f (x), y?", '50%25%20o%27f%20%28x%29%2C%20y%3F'],
    ['..x', '..x'],
  ])('the removal of the label %s', async (label, path) => {
    const { open, server } = await answering(200, [])
    await open().removeLabel(ISSUE, label)
    expect(server.seen[0]).toMatchObject({
      method: 'DELETE',
      url: `/repos/octo/hello/issues/7/labels/${path}`,
    })
  })

  test('the removal of a label that is not there is done; of one on an issue that is not there it is not', async () => {
    const { open } = await answering(404, { message: 'Label does not exist' })
    await open().removeLabel(ISSUE, 'bot')
    const { open: openOther } = await answering(404, { message: 'Not Found' })
    expect(await faultOf(openOther().removeLabel(ISSUE, 'bot'))).toMatchObject({
      code: 'github/not-found',
      message: 'octo/hello#7 was not found on GitHub.',
    })
  })

  test.each(['', ' ', '.', '..'])(
    'the removal of the label "%s" is not sent: it would remove all labels',
    async (label) => {
      const { open, server } = await answering(200, [])
      expect(await faultOf(open().removeLabel(ISSUE, label))).toMatchObject({
        code: 'github/refused',
        effect: 'none',
      })
      expect(server.seen).toEqual([])
    },
  )
})
