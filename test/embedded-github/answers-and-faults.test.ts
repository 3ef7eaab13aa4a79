import { existsSync, readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { Ajv } from 'ajv'
import { fieldsOf } from '../../embedded-github/request-fields.ts'
import { ROUTES, routeName } from '../../embedded-github/routes.ts'
import type { FaultAction, FaultRule } from '../../embedded-github/test-faults.ts'
import { startTestGitHub, type TestGitHub } from '../support/github-rig.ts'

describe('the embedded GitHub beside the published description', () => {
  const DESCRIPTION = join(
    dirname(dirname(dirname(import.meta.dirname))),
    'shared/github-openapi.json',
  )

  let github: TestGitHub

  beforeAll(async () => {
    github = await startTestGitHub()
    await prepare(github)
  })
  afterAll(() => github.stop())

  /** Issue 1 with everything that can happen to one; pull 2 merged; pull 3 open; issue 4 nearly empty. */
  async function prepare({ control }: TestGitHub): Promise<void> {
    const repo = 'octo/app'
    const issue = { repo, number: 1 }
    await control('createIssue', {
      repo,
      title: 'It breaks',
      body: 'badly',
      labels: ['bug', '🤖 fix'],
    })
    await control('commentIssue', { ...issue, body: 'Me too', actor: 'stranger' })
    await control('pushCommit', {
      repo,
      branch: 'fix',
      files: { 'a.txt': 'a\n', 'README.md': null },
    })
    await control('createPull', {
      repo,
      title: 'Mend it',
      body: 'Closes #1',
      head: 'fix',
      base: 'main',
    })
    await control('editIssue', { ...issue, title: 'It breaks often', body: null })
    await control('mergePull', { repo, number: 2 })
    await control('reopenIssue', issue)
    await control('unlabelIssue', { ...issue, label: 'bug' })
    await control('pushCommit', { repo, branch: 'more', files: { 'b.txt': 'b\n' } })
    await control('createPull', { repo, title: 'More', body: null, head: 'more', base: 'main' })
    await control('pushCommit', { repo, branch: 'third', files: { 'c.txt': 'c\n' } })
    await control('createIssue', { repo, title: 'Quiet' })
    await control('labelIssue', { repo, number: 3, label: 'plain' })
  }

  /** What to send to get each endpoint's good answer: path, body, status. Every route has a row. */
  const GOOD: Readonly<Record<string, readonly [path: string, status: number, body?: unknown]>> = {
    'GET /user': ['/user', 200],
    'GET /user/repos': ['/user/repos?sort=full_name', 200],
    'GET /rate_limit': ['/rate_limit', 200],
    'GET /repos/{owner}/{repo}': ['/repos/octo/app', 200],
    'GET /repos/{owner}/{repo}/collaborators/{username}/permission': [
      '/repos/octo/app/collaborators/maintainer/permission',
      200,
    ],
    'GET /repos/{owner}/{repo}/branches/{branch}': ['/repos/octo/app/branches/main', 200],
    'GET /repos/{owner}/{repo}/git/ref/{ref}': ['/repos/octo/app/git/ref/heads/main', 200],
    'GET /repos/{owner}/{repo}/labels': ['/repos/octo/app/labels', 200],
    'POST /repos/{owner}/{repo}/labels': [
      '/repos/octo/app/labels',
      201,
      { name: 'new', color: 'ff0000' },
    ],
    'GET /repos/{owner}/{repo}/labels/{name}': ['/repos/octo/app/labels/bug', 200],
    'GET /repos/{owner}/{repo}/issues': ['/repos/octo/app/issues?state=all', 200],
    'POST /repos/{owner}/{repo}/issues': [
      '/repos/octo/app/issues',
      201,
      { title: 'New', labels: ['bug'] },
    ],
    'GET /repos/{owner}/{repo}/issues/comments/{comment_id}': [
      '/repos/octo/app/issues/comments/COMMENT',
      200,
    ],
    'PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}': [
      '/repos/octo/app/issues/comments/COMMENT',
      200,
      { body: 'Me too!' },
    ],
    'DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}': [
      '/repos/octo/app/issues/comments/COMMENT',
      204,
    ],
    'GET /repos/{owner}/{repo}/issues/{issue_number}': ['/repos/octo/app/issues/1', 200],
    'PATCH /repos/{owner}/{repo}/issues/{issue_number}': [
      '/repos/octo/app/issues/1',
      200,
      { state: 'closed', state_reason: 'not_planned' },
    ],
    'GET /repos/{owner}/{repo}/issues/{issue_number}/comments': [
      '/repos/octo/app/issues/1/comments',
      200,
    ],
    'POST /repos/{owner}/{repo}/issues/{issue_number}/comments': [
      '/repos/octo/app/issues/1/comments',
      201,
      { body: 'Done' },
    ],
    'GET /repos/{owner}/{repo}/issues/{issue_number}/labels': [
      '/repos/octo/app/issues/1/labels',
      200,
    ],
    'POST /repos/{owner}/{repo}/issues/{issue_number}/labels': [
      '/repos/octo/app/issues/1/labels',
      200,
      { labels: ['one', 'two'] },
    ],
    'DELETE /repos/{owner}/{repo}/issues/{issue_number}/labels/{name}': [
      '/repos/octo/app/issues/1/labels/one',
      200,
    ],
    'GET /repos/{owner}/{repo}/issues/{issue_number}/events': [
      '/repos/octo/app/issues/1/events',
      200,
    ],
    'GET /repos/{owner}/{repo}/issues/{issue_number}/timeline': [
      '/repos/octo/app/issues/1/timeline',
      200,
    ],
    'GET /repos/{owner}/{repo}/pulls': ['/repos/octo/app/pulls?state=all', 200],
    'POST /repos/{owner}/{repo}/pulls': [
      '/repos/octo/app/pulls',
      201,
      { title: 'Third', head: 'third', base: 'main' },
    ],
    'GET /repos/{owner}/{repo}/pulls/{pull_number}': ['/repos/octo/app/pulls/2', 200],
    'PATCH /repos/{owner}/{repo}/pulls/{pull_number}': [
      '/repos/octo/app/pulls/3',
      200,
      { title: 'More!' },
    ],
    'GET /repos/{owner}/{repo}/pulls/{pull_number}/files': ['/repos/octo/app/pulls/2/files', 200],
    'GET /repos/{owner}/{repo}/pulls/{pull_number}/commits': [
      '/repos/octo/app/pulls/2/commits',
      200,
    ],
    'PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge': [
      '/repos/octo/app/pulls/3/merge',
      405,
      {},
    ],
  }

  /** Bad requests and the error each deserves; the description says what an error looks like. */
  const BAD: readonly Readonly<{ method: string; path: string; status: number; body?: unknown }>[] =
    [
      { method: 'GET', path: '/repos/octo/nothing', status: 404 },
      { method: 'GET', path: '/repos/octo/app/issues/999', status: 404 },
      { method: 'GET', path: '/repos/octo/app/issues?state=odd', status: 422 },
      { method: 'POST', path: '/repos/octo/app/issues', status: 422, body: { title: ' ' } },
      { method: 'POST', path: '/repos/octo/app/labels', status: 422, body: { name: 'bug' } },
      {
        method: 'POST',
        path: '/repos/octo/app/issues/1/comments',
        status: 422,
        body: { body: '' },
      },
      { method: 'PATCH', path: '/repos/octo/app/issues/1', status: 422, body: { state: 'odd' } },
      {
        method: 'POST',
        path: '/repos/octo/app/pulls',
        status: 422,
        body: { title: 'x', head: 'more', base: 'main' },
      },
      {
        method: 'POST',
        path: '/repos/octo/app/pulls',
        status: 422,
        body: { title: 'x', head: 'absent', base: 'main' },
      },
      { method: 'DELETE', path: '/repos/octo/app/issues/1/labels/none', status: 404 },
    ]

  const conform = existsSync(DESCRIPTION) ? describedBy(DESCRIPTION) : null
  if (conform === null) {
    process.stderr.write(
      'GitHub’s published description is not at hand: answers are not checked against it.\n',
    )
  }

  test('the description would object to an answer of another shape', () => {
    if (conform === null) return
    expect(conform('GET', '/repos/{owner}/{repo}/issues', 200, [{ number: 'one' }])).not.toEqual([])
  })

  test('every endpoint has a good answer, of the described shape', async () => {
    const { comments } = await github.control('readIssue', { repo: 'octo/app', number: 1 })
    const comment = String(comments[0]?.id)
    expect(Object.keys(GOOD)).toEqual(ROUTES.map(routeName))
    const inOrder = Object.entries(GOOD).sort(([a], [b]) => Number(isLast(a)) - Number(isLast(b)))
    for (const [name, [path, status, body]] of inOrder) {
      const [method = '', template = ''] = name.split(' ')
      const answer = await github.request(path.replace('COMMENT', comment), {
        method,
        ...(body === undefined ? {} : { body }),
      })
      expect([name, answer.status]).toEqual([name, status])
      expect(conform?.(method, template, status, answer.body) ?? []).toEqual([])
    }
  })

  test.each(BAD)('$method $path answers $status as described', async (bad) => {
    const { method, path, status, body } = bad
    const answer = await github.request(path, { method, ...(body === undefined ? {} : { body }) })
    expect(answer.status).toBe(status)
    const template = ROUTES.find((route) => isInstance(path, route.template))?.template ?? ''
    expect(conform?.(method, template, status, answer.body) ?? []).toEqual([])
  })

  const isLast = (name: string): boolean => name.startsWith('DELETE')

  function isInstance(path: string, template: string): boolean {
    const pattern = template.replaceAll(/\{\w+\}/g, '[^/]+')
    return new RegExp(`^${pattern}$`).test(path.replace(/\?.*/, ''))
  }

  type Conform = (
    method: string,
    template: string,
    status: number,
    body: unknown,
  ) => readonly string[]

  /** Checks an answer; the result is what is wrong with it. What the description does not have passes. */
  function describedBy(path: string): Conform {
    const description = withNulls(JSON.parse(readFileSync(path, 'utf8')))
    const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
    ajv.addSchema({ $id: 'github', ...fieldsOf(description) })
    return (method, template, status, body) => {
      const escaped = template.replaceAll('~', '~0').replaceAll('/', '~1')
      const at = ['paths', template, method.toLowerCase(), 'responses', String(status)]
      const response = fieldsOf(at.reduce((node: unknown, key) => fieldsOf(node)[key], description))
      const { $ref: reference, content } = response
      if (reference === undefined && content === undefined) return []
      const pointer =
        typeof reference === 'string'
          ? reference
          : `#/paths/${escaped}/${method.toLowerCase()}/responses/${status}`
      const schema = {
        $ref: `github${pointer}/content/application~1json/schema`
          .replaceAll('{', '%7B')
          .replaceAll('}', '%7D'),
      }
      const validate = ajv.compile(schema)
      return validate(body)
        ? []
        : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
    }
  }

  /** OpenAPI 3.0 marks what may be null with `nullable`; JSON Schema needs it said. */
  function withNulls(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(withNulls)
    if (typeof node !== 'object' || node === null) return node
    const { nullable, ...rest } = Object.fromEntries(
      Object.entries(node).map(([key, value]) => [key, withNulls(value)]),
    )
    return nullable === true ? { anyOf: [{ type: 'null' }, rest] } : rest
  }
})

describe('faults on demand', () => {
  const repo = 'octo/app'
  const COMMENTS = '/repos/octo/app/issues/1/comments'
  const POST_COMMENT = 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments'
  const GET_USER = 'GET /user'

  let github: TestGitHub

  beforeAll(async () => {
    github = await startTestGitHub()
    await github.control('createIssue', { repo, title: 'One' })
  })
  afterAll(() => github.stop())
  beforeEach(() => github.control('clearFaults', {}))

  const arm = (action: FaultAction, rule: Omit<FaultRule, 'action'> = { route: POST_COMMENT }) =>
    github.control('addFault', { ...rule, action })

  const comment = (body: string) => github.request(COMMENTS, { method: 'POST', body: { body } })

  /** Bodies of the comments that exist, whatever lists show. */
  async function existing(): Promise<readonly string[]> {
    const { comments } = await github.control('readIssue', { repo, number: 1 })
    return comments.map(({ body }) => body)
  }

  async function failureOf(sent: Promise<unknown>): Promise<unknown> {
    return sent.then(
      () => null,
      (thrown: Error) => thrown.cause ?? thrown,
    )
  }

  describe('which requests a fault takes', () => {
    test.each([
      [{ occurrence: 2 }, [200, 500, 200, 200]],
      [{ occurrence: { from: 2, to: 3 } }, [200, 500, 500, 200]],
      [{ occurrence: { from: 3 } }, [200, 200, 500, 500]],
      [{}, [500, 500, 500, 500]],
    ])('%j of those that match', async (rule, expected) => {
      await arm({ kind: 'answer', status: 500 }, { route: GET_USER, ...rule })
      const statuses = []
      for (const _ of expected) statuses.push((await github.request('/user')).status)
      expect(statuses).toEqual(expected)
      const [armed] = await github.control('listFaults')
      const fired = expected.filter((status) => status === 500).length
      expect([armed?.matched, armed?.fired]).toEqual([4, fired])
    })

    test('by method, pattern and repository', async () => {
      await arm({ kind: 'answer', status: 500 }, { method: 'GET', pattern: 'labels=a%2Fb' })
      expect((await github.request('/repos/octo/app/issues?labels=a%2Fb')).status).toBe(500)
      expect((await github.request('/repos/octo/app/issues?labels=c')).status).toBe(200)
      await arm({ kind: 'answer', status: 503 }, { repository: 'Octo/App' })
      expect((await github.request('/repos/octo/app')).status).toBe(503)
      expect((await github.request('/user')).status).toBe(200)
    })

    test('a rule for a route that does not exist is refused, for it would never fire', async () => {
      const rule = { route: 'POST /repos/{owner}/{repo}/merges' }
      await expect(arm({ kind: 'hang' }, rule)).rejects.toThrow('there is no route')
    })

    test('faults are on record with the request', async () => {
      const { id } = await arm({ kind: 'answer', status: 502 }, { route: GET_USER })
      await github.request('/user')
      const { entries } = await github.control('readRequests', { status: 502 })
      expect(entries.at(-1)).toMatchObject({ route: GET_USER, faults: [id] })
    })
  })

  describe('what a fault does', () => {
    test('an answer of any status, body and headers, instead of the effect', async () => {
      const headers = { 'Retry-After': '7' }
      await arm({ kind: 'answer', status: 503, body: { message: 'no' }, headers })
      const answer = await comment('answered')
      expect([answer.status, answer.body]).toEqual([503, { message: 'no' }])
      expect(answer.headers.get('retry-after')).toBe('7')
      expect(answer.headers.get('x-ratelimit-limit')).toBe('5000')
      expect(await existing()).not.toContain('answered')
    })

    test('an error after the effect', async () => {
      await arm({ kind: 'answer', status: 500, effect: true })
      expect((await comment('done but failed')).status).toBe(500)
      expect(await existing()).toContain('done but failed')
    })

    test('a delay', async () => {
      await arm({ kind: 'delay' }, { route: GET_USER, delayMs: 120 })
      const start = performance.now()
      expect((await github.request('/user')).status).toBe(200)
      expect(performance.now() - start).toBeGreaterThanOrEqual(115)
    })

    test('latency on everything', async () => {
      await github.control('configure', { latencyMs: 120 })
      const start = performance.now()
      await github.request('/user')
      expect(performance.now() - start).toBeGreaterThanOrEqual(115)
      await github.control('configure', { latencyMs: 0 })
    })

    test.each([
      ['before', false],
      ['after', true],
    ])('a connection reset %s the effect', async (when, effect) => {
      await arm({ kind: 'reset', effect })
      expect(await failureOf(comment(`reset ${when}`))).toMatchObject({ code: 'ECONNRESET' })
      expect((await existing()).includes(`reset ${when}`)).toBe(effect)
    })

    test.each([false, true])('a request that is never answered, effect %s', async (effect) => {
      await arm({ kind: 'hang', effect })
      const sent = fetch(`${github.url}${COMMENTS}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${github.token}` },
        body: JSON.stringify({ body: `hung ${effect}` }),
        signal: AbortSignal.timeout(250),
      })
      expect(await failureOf(sent)).toMatchObject({ name: 'TimeoutError' })
      expect((await existing()).includes(`hung ${effect}`)).toBe(effect)
      const { entries } = await github.control('readRequests', { route: POST_COMMENT })
      expect(entries.at(-1)?.status).toBeNull()
    })

    test('JSON that stops half way, in an answer of that length', async () => {
      await arm({ kind: 'truncate', bytes: 10 })
      const response = await fetch(`${github.url}${COMMENTS}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${github.token}` },
        body: '{"body":"halved"}',
      })
      expect([response.status, (await response.text()).length]).toEqual([201, 10])
      expect(await existing()).toContain('halved')
    })

    test('an answer cut off short of its length', async () => {
      await arm({ kind: 'truncate', cut: true }, { route: GET_USER })
      const ending = await new Promise((resolve) => {
        const sent = httpRequest(`${github.url}/user`, {
          headers: { 'user-agent': 'test', authorization: `Bearer ${github.token}` },
        })
        sent.on('response', (response) => {
          response.on('error', () => resolve([response.statusCode, response.complete]))
          response.on('end', () => resolve('complete'))
          response.resume()
        })
        sent.end()
      })
      expect(ending).toEqual([200, false])
    })

    test('a page of HTML', async () => {
      await arm({ kind: 'html' }, { route: GET_USER })
      const answer = await github.request('/user')
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        502,
        'text/html; charset=utf-8',
      ])
      expect(answer.text).toContain('<html>')
    })

    test('fields altered in an object, and in each of a list', async () => {
      await arm({ kind: 'alter', fields: { title: null } }, { repository: repo })
      expect((await github.request('/repos/octo/app/issues/1')).body['title']).toBeNull()
      const list = await github.request('/repos/octo/app/issues')
      expect(list.body).toMatchObject([{ number: 1, title: null }])
      expect(list.headers.get('etag')).toBeNull()
    })

    test('the primary rate limit', async () => {
      await arm({ kind: 'primary-limit', resetInSeconds: 90 })
      const answer = await comment('limited')
      expect(answer.status).toBe(403)
      expect(answer.body['message']).toMatch(/^API rate limit exceeded/)
      expect(answer.headers.get('x-ratelimit-remaining')).toBe('0')
      const reset = Number(answer.headers.get('x-ratelimit-reset'))
      expect(reset - Date.parse(answer.headers.get('date') ?? '') / 1000).toBe(90)
      expect(await existing()).not.toContain('limited')
    })

    test.each([
      [{}, 403, null],
      [{ status: 429, retryAfterSeconds: 30 } as const, 429, '30'],
    ])('a secondary rate limit %j with quota left', async (details, status, wait) => {
      await arm({ kind: 'secondary-limit', ...details })
      const answer = await comment('limited')
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, wait])
      expect(answer.body['message']).toMatch(/^You have exceeded a secondary rate limit/)
      expect(Number(answer.headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0)
    })
  })

  describe('read-after-write lag', () => {
    test('a comment is in no list for so many reads, but counted and readable by itself', async () => {
      await arm({ kind: 'lag', reads: 2 })
      const { body } = await comment('lagging')
      const listed = async () =>
        (await github.request(`${COMMENTS}?per_page=100`)).text.includes('lagging')
      expect(await listed()).toBe(false)
      expect(
        (await github.request(`/repos/octo/app/issues/comments/${String(body['id'])}`)).status,
      ).toBe(200)
      const issue = await github.request('/repos/octo/app/issues/1')
      expect(issue.body['comments']).toBe((await existing()).length)
      expect(await listed()).toBe(false)
      expect(await listed()).toBe(true)
    })

    test('a pull request is in no list for a time, but the only one there can be', async () => {
      await github.control('pushCommit', { repo, branch: 'topic', files: { t: 't' } })
      await arm({ kind: 'lag', lagMs: 15_000 }, { route: 'POST /repos/{owner}/{repo}/pulls' })
      const options = { method: 'POST', body: { title: 'T', head: 'topic', base: 'main' } }
      expect((await github.request('/repos/octo/app/pulls', options)).status).toBe(201)
      const listed = async (path: string) =>
        (await github.request(path)).text.includes('"title":"T"')
      expect(await listed('/repos/octo/app/pulls?state=all')).toBe(false)
      expect(await listed('/repos/octo/app/issues')).toBe(false)
      expect((await github.request('/repos/octo/app/pulls', options)).status).toBe(422)
      await github.control('configure', { clockOffsetMs: 14_000 })
      expect(await listed('/repos/octo/app/pulls?state=all')).toBe(false)
      await github.control('configure', { clockOffsetMs: 15_001 })
      expect(await listed('/repos/octo/app/pulls?state=all')).toBe(true)
      expect(await listed('/repos/octo/app/issues')).toBe(true)
    })

    test('what was made before an error lags when its rule says so', async () => {
      const action = { kind: 'answer', status: 500, effect: true } as const
      await arm(action, { route: POST_COMMENT, lag: { reads: 1 } })
      expect((await comment('late and unknown')).status).toBe(500)
      const listed = async () =>
        (await github.request(`${COMMENTS}?per_page=100`)).text.includes('late and unknown')
      expect(await listed()).toBe(false)
      expect(await listed()).toBe(true)
      expect(await existing()).toContain('late and unknown')
    })

    test('events lag too', async () => {
      const route = 'POST /repos/{owner}/{repo}/issues/{issue_number}/labels'
      await arm({ kind: 'lag', reads: 1 }, { route })
      const options = { method: 'POST', body: { labels: ['late'] } }
      await github.request('/repos/octo/app/issues/1/labels', options)
      const listed = async () =>
        (await github.request('/repos/octo/app/issues/1/timeline')).text.includes('"late"')
      expect(await listed()).toBe(false)
      expect(await listed()).toBe(true)
    })
  })
})
