import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

let github: TestGitHub

beforeAll(async () => {
  github = await startTestGitHub()
  const { control } = github
  await control('createIssue', { repo: 'octo/app', title: 'One', author: 'stranger' })
  await control('createRepository', {
    repo: 'octo/hidden',
    isPrivate: true,
    roles: { reader: 'read' },
  })
})
afterAll(() => github.stop())

const tokenOf = async (login: string, permissions = {}) =>
  (await github.control('createToken', { login, permissions })).token

describe('who may do what', () => {
  test('an unknown token is refused, also as password of basic authentication', async () => {
    const bad = await github.request('/user', { token: 'nobody' })
    expect([bad.status, bad.body]).toMatchObject([401, { message: 'Bad credentials' }])
    const basic = (token: string) => ({
      authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}`,
    })
    const wrong = await github.request('/user', { token: null, headers: basic('nobody') })
    expect(wrong.status).toBe(401)
    const right = await github.request('/user', { token: null, headers: basic(github.token) })
    expect(right.body).toMatchObject({ login: 'automation-bot', type: 'User' })
  })

  test('without a token what is public can be read, and nothing written', async () => {
    const read = await github.request('/repos/octo/app/issues/1', { token: null })
    expect([read.status, read.headers.get('x-ratelimit-limit')]).toEqual([200, '60'])
    expect((await github.request('/user', { token: null })).status).toBe(401)
    const options = { method: 'POST', body: { body: 'x' }, token: null }
    const write = await github.request('/repos/octo/app/issues/1/comments', options)
    expect([write.status, write.body]).toMatchObject([401, { message: 'Requires authentication' }])
  })

  test('what is private is not there for others', async () => {
    const status = async (token: string | null) =>
      (await github.request('/repos/octo/hidden', { token })).status
    expect(await status(null)).toBe(404)
    expect(await status(await tokenOf('stranger'))).toBe(404)
    expect(await status(await tokenOf('reader'))).toBe(200)
    expect(await status(github.token)).toBe(200)
  })

  test('a token without a permission, or an account without the role, is told so', async () => {
    const reading = await tokenOf('automation-bot', { issues: 'read' })
    const path = '/repos/octo/app/issues/1/labels'
    const options = { method: 'POST', body: { labels: ['x'] } }
    const refused = await github.request(path, { ...options, token: reading })
    expect([refused.status, refused.body]).toMatchObject([
      403,
      { message: 'Resource not accessible by personal access token' },
    ])
    expect(refused.headers.get('x-accepted-github-permissions')).toBe('issues=write')
    const stranger = await tokenOf('stranger')
    expect((await github.request(path, { ...options, token: stranger })).status).toBe(403)
    const title = { method: 'PATCH', body: { title: 'Mine' }, token: stranger }
    expect((await github.request('/repos/octo/app/issues/1', title)).status).toBe(200)
    await github.control('setRole', { repo: 'octo/app', login: 'stranger', role: 'triage' })
    expect((await github.request(path, { ...options, token: stranger })).status).toBe(200)
  })

  test.each([
    ['maintainer', 'admin', 'admin'],
    ['automation-bot', 'write', 'write'],
    ['octo', 'admin', 'admin'],
    ['passer-by', 'read', 'read'],
  ])('the permission of %s is %s', async (login, permission, role) => {
    await github.control('createAccount', { login })
    const { body } = await github.request(`/repos/octo/app/collaborators/${login}/permission`)
    expect(body).toMatchObject({ permission, role_name: role, user: { login } })
  })

  test('own repositories are listed by name', async () => {
    const { body } = await github.request('/user/repos?sort=full_name&per_page=100')
    expect(body).toMatchObject([{ full_name: 'octo/app' }, { full_name: 'octo/hidden' }])
  })

  test('an archived repository is read-only', async () => {
    await github.control('createRepository', { repo: 'octo/old' })
    await github.control('editRepository', { repo: 'octo/old', isArchived: true })
    expect((await github.request('/repos/octo/old')).body).toMatchObject({ archived: true })
    const options = { method: 'POST', body: { title: 'x' } }
    expect((await github.request('/repos/octo/old/issues', options)).status).toBe(403)
  })

  test('a request without User-Agent, or with broken JSON, is not taken', async () => {
    const nameless = await github.request('/user', { headers: { 'user-agent': '' } })
    expect(nameless.status).toBe(403)
    const response = await fetch(`${github.url}/repos/octo/app/issues`, {
      method: 'POST',
      headers: { authorization: `Bearer ${github.token}` },
      body: '{"title": ',
    })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { message: 'Problems parsing JSON' },
    ])
  })

  test('a body over 1 MiB is not read', async () => {
    const body = { title: 'x', body: 'x'.repeat(1024 * 1024) }
    const answer = await github.request('/repos/octo/app/issues', { method: 'POST', body })
    expect(answer.status).toBe(413)
  })

  test('an exhausted rate limit refuses everything but asking for it, until the reset', async () => {
    const token = await tokenOf('busy')
    await github.control('setRateLimit', { login: 'busy', remaining: 1, resetInSeconds: 60 })
    expect((await github.request('/user', { token })).headers.get('x-ratelimit-remaining')).toBe(
      '0',
    )
    const refused = await github.request('/user', { token })
    expect(refused.status).toBe(403)
    expect(refused.body['message']).toMatch(/^API rate limit exceeded for user ID \d+\.$/)
    const asked = await github.request('/rate_limit', { token })
    expect([asked.status, asked.body]).toMatchObject([200, { rate: { limit: 5000, remaining: 0 } }])
    await github.control('configure', { clockOffsetMs: 61_000 })
    expect((await github.request('/user', { token })).status).toBe(200)
  })

  test('the control interface takes JSON only, and names what it refuses', async () => {
    const response = await fetch(`${github.url}/_control/mergePull`, { method: 'POST', body: '{}' })
    expect(response.status).toBe(422)
    await expect(
      github.control('closeIssue', { repo: 'octo/none', number: 1 }),
    ).rejects.toMatchObject({
      code: 'demo/refused',
      message: 'The embedded GitHub refused: there is no repository octo/none.',
    })
  })
})
