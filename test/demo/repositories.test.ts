import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startTestGitHub, type TestGitHub } from '../support/embedded-github.ts'

describe('who may do what', () => {
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

describe('branches', () => {
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

  test('are read by name, slashes included', async () => {
    git('branch', 'deep/er', 'main')
    const oid = git('rev-parse', 'main')
    const ref = await github.request('/repos/octo/app/git/ref/heads/deep/er')
    expect(ref.body).toMatchObject({ ref: 'refs/heads/deep/er', object: { sha: oid } })
    const branch = await github.request('/repos/octo/app/branches/deep%2Fer')
    expect(branch.body).toMatchObject({ name: 'deep/er', commit: { sha: oid } })
    expect((await github.request('/repos/octo/app/git/ref/heads/deep')).status).toBe(404)
    expect((await github.request('/repos/octo/app/git/ref/heads/..%2f..%2fconfig')).status).toBe(
      404,
    )
  })

  test('have a default that clones begin with', async () => {
    await github.control('createRepository', { repo: 'octo/dev', defaultBranch: 'develop' })
    const { gitPath: path } = await github.control('readRepository', { repo: 'octo/dev' })
    const head = () =>
      execFileSync('git', ['ls-remote', '--symref', path, 'HEAD'], { encoding: 'utf8' })
    expect(head()).toMatch(/^ref: refs\/heads\/develop\tHEAD/)
    await github.control('pushCommit', { repo: 'octo/dev', branch: 'trunk', files: { a: 'a' } })
    await github.control('editRepository', { repo: 'octo/dev', defaultBranch: 'trunk' })
    expect(head()).toMatch(/^ref: refs\/heads\/trunk\tHEAD/)
    const { body } = await github.request('/repos/octo/dev')
    expect(body).toMatchObject({ default_branch: 'trunk' })
  })

  test('are none in an empty repository, and come from another when copied', async () => {
    const empty = await github.control('createRepository', { repo: 'octo/empty', files: null })
    expect(empty.branches).toEqual({})
    const copy = await github.control('createRepository', { repo: 'octo/copy', copyOf: gitPath })
    expect(copy.branches['main']).toBe(git('rev-parse', 'main'))
  })

  test('get files of every kind, and can be rewritten', async () => {
    const { oid } = await github.control('pushCommit', {
      repo,
      branch: 'kinds',
      files: {
        'run me.sh': { content: '#!/bin/sh\n', mode: '100755' },
        link: { content: 'run me.sh', mode: '120000' },
        binary: { content: 'AAEC', encoding: 'base64' },
        'README.md': null,
      },
    })
    const listing = git('ls-tree', '--format=%(objectmode) %(path)', oid)
    expect(listing.split('\n').filter((line) => !line.includes('.txt'))).toEqual([
      '100644 binary',
      '120000 link',
      '100755 run me.sh',
    ])
    const order = { repo, branch: 'kinds', files: { x: 'x' }, isForced: true }
    const forced = await github.control('pushCommit', order)
    expect(git('rev-parse', `${forced.oid}^`)).toBe(git('rev-parse', 'main'))
  })
})

describe('what is no longer where it was', () => {
  let github: TestGitHub

  beforeAll(async () => {
    github = await startTestGitHub()
    await github.control('createIssue', { repo: 'octo/app', title: 'One', labels: ['bug'] })
  })
  afterAll(() => github.stop())

  test('a renamed repository redirects by its id, and answers there', async () => {
    const { control } = github
    await control('createRepository', { repo: 'octo/before' })
    await control('createIssue', { repo: 'octo/before', title: 'Kept' })
    const { gitPath, id } = await control('readRepository', { repo: 'octo/before' })
    await control('renameRepository', { repo: 'octo/before', to: 'octo/after' })

    const path = '/repos/octo/Before/issues?state=all&per_page=5'
    const moved = await github.request(path)
    const url = `${github.url}/repositories/${id}/issues?state=all&per_page=5`
    expect([moved.status, moved.headers.get('location')]).toEqual([301, url])
    expect(moved.body).toMatchObject({ message: 'Moved Permanently', url })
    expect((await github.request(url)).body).toMatchObject([{ title: 'Kept' }])
    const options = { method: 'POST', body: { title: 'New' } }
    expect((await github.request('/repos/octo/before/issues', options)).status).toBe(307)
    const { body } = await github.request(`/repositories/${id}`)
    expect(body).toMatchObject({ full_name: 'octo/after' })
    expect(execFileSync('git', ['ls-remote', gitPath, 'main'], { encoding: 'utf8' })).not.toBe('')

    await control('createRepository', { repo: 'octo/before' })
    expect((await github.request('/repos/octo/before')).body).toMatchObject({ name: 'before' })
  })

  test('a transferred issue leads to the other repository', async () => {
    await github.control('createRepository', { repo: 'octo/other' })
    await github.control('createIssue', { repo: 'octo/app', title: 'Off', labels: ['bug'] })
    const order = { repo: 'octo/app', number: 2, to: 'octo/other' }
    const { number } = await github.control('transferIssue', order)
    const { id } = await github.control('readRepository', { repo: 'octo/other' })
    const moved = await github.request('/repos/octo/app/issues/2')
    const url = `${github.url}/repositories/${id}/issues/${number}`
    expect([moved.status, moved.headers.get('location')]).toEqual([301, url])
    expect((await github.request(url)).body).toMatchObject({
      title: 'Off',
      labels: [{ name: 'bug' }],
      repository_url: `${github.url}/repos/octo/other`,
    })
    const comments = await github.request('/repos/octo/app/issues/2/comments?per_page=9')
    expect(comments.headers.get('location')).toBe(`${url}/comments?per_page=9`)
    expect((await github.request('/repos/octo/app/issues')).body).toMatchObject([{ number: 1 }])
  })

  test('a deleted issue is gone, and its number is not used again', async () => {
    const { number } = await github.control('createIssue', { repo: 'octo/app', title: 'Spam' })
    await github.control('deleteIssue', { repo: 'octo/app', number })
    const answer = await github.request(`/repos/octo/app/issues/${number}`)
    expect([answer.status, answer.body]).toMatchObject([410, { message: 'This issue was deleted' }])
    const next = await github.control('createIssue', { repo: 'octo/app', title: 'Next' })
    expect(next.number).toBe(number + 1)
  })

  test('disabled issues are gone as a whole', async () => {
    await github.control('createRepository', { repo: 'octo/quiet' })
    await github.control('editRepository', { repo: 'octo/quiet', hasIssues: false })
    expect((await github.request('/repos/octo/quiet/issues')).status).toBe(410)
  })
})
