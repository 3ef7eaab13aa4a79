import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Ajv } from 'ajv'
import { fieldsOf } from '../../daemon/demo/api-messages.ts'
import { ROUTES, routeName } from '../../daemon/demo/routes.ts'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

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
  await control('pushCommit', { repo, branch: 'fix', files: { 'a.txt': 'a\n', 'README.md': null } })
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
  'GET /repos/{owner}/{repo}/pulls/{pull_number}/commits': ['/repos/octo/app/pulls/2/commits', 200],
  'PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge': ['/repos/octo/app/pulls/3/merge', 405, {}],
}

/** Bad requests and the error each deserves; the description says what an error looks like. */
const BAD: readonly Readonly<{ method: string; path: string; status: number; body?: unknown }>[] = [
  { method: 'GET', path: '/repos/octo/nothing', status: 404 },
  { method: 'GET', path: '/repos/octo/app/issues/999', status: 404 },
  { method: 'GET', path: '/repos/octo/app/issues?state=odd', status: 422 },
  { method: 'POST', path: '/repos/octo/app/issues', status: 422, body: { title: ' ' } },
  { method: 'POST', path: '/repos/octo/app/labels', status: 422, body: { name: 'bug' } },
  { method: 'POST', path: '/repos/octo/app/issues/1/comments', status: 422, body: { body: '' } },
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

describe('the embedded GitHub beside the published description', () => {
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
