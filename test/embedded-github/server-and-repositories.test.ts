import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import { connectControl } from '../../embedded-github/control-client.ts'
import { fieldsOf } from '../../embedded-github/request-fields.ts'
import { startTestGitHub, type TestAnswer, type TestGitHub } from '../support/github-rig.ts'

describe('the server', () => {
  const repo = 'octo/app'

  let folder: string
  let program: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'embedded-github-'))
    program = join(folder, 'embedded-github.mjs')
    await build({
      entryPoints: [join(import.meta.dirname, '../../embedded-github/main.ts')],
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: program,
    })
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const started: ChildProcess[] = []
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL')
  })

  function startProcess(root: string, ...more: readonly string[]) {
    const child = spawn(process.execPath, [program, '--root', root, ...more], {
      stdio: 'pipe',
    })
    started.push(child)
    return child
  }

  /** Starts the program and waits for its line. */
  async function start() {
    const child = startProcess(mkdtempSync(join(folder, 'root-')))
    const line: readonly unknown[] = await once(createInterface({ input: child.stdout }), 'line')
    const said: unknown = JSON.parse(String(line[0]))
    expect(said).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      pid: child.pid,
    })
    const url = String(fieldsOf(said)['url'])
    return { child, control: connectControl(url), url, ended: once(child, 'exit') }
  }

  describe('the embedded GitHub as a process', () => {
    test('says where it is, obeys its operator, and ends when its standard input closes', async () => {
      const { child, control, ended } = await start()
      await control('createRepository', { repo })
      const { number } = await control('createIssue', { repo, title: 'One' })
      expect(number).toBe(1)
      child.stdin.end()
      expect(await ended).toEqual([0, null])
    })

    test('ends on SIGTERM, also with a request left hanging', async () => {
      const { child, control, url, ended } = await start()
      await control('addFault', { action: { kind: 'hang' } })
      const hanging = fetch(`${url}/user`).then(
        () => 'answered',
        () => 'ended',
      )
      while ((await control('readRequests', {})).total === 0) continue
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
      expect(await hanging).toBe('ended')
    })

    test('says in one line why it cannot start', async () => {
      const { url } = await start()
      const child = startProcess(folder, '--port', new URL(url).port)
      let complaint = ''
      child.stderr.on('data', (chunk: Buffer) => {
        complaint += chunk.toString()
      })
      expect(await once(child, 'close')).toEqual([1, null])
      expect(complaint).toMatch(/^The embedded GitHub refused: port \d+ cannot be used\.\n$/)
    })
  })

  describe('a restart on the same root', () => {
    test('goes on where it was: content, ids, tokens, branches', async () => {
      const before = await startTestGitHub()
      await before.control('createIssue', { repo, title: 'One', labels: ['🤖 auto-fix'] })
      await before.control('pushCommit', { repo, branch: 'topic', files: { t: 't' } })
      await before.control('createPull', {
        repo,
        title: 'T',
        body: 'b',
        head: 'topic',
        base: 'main',
      })
      const paths = ['/user', '/repos/octo/app/issues/1/timeline', '/repos/octo/app/pulls/2']
      const answers = async (github: typeof before) => {
        const texts = paths.map(async (path) => (await github.request(path)).text)
        return (await Promise.all(texts)).map((text) => text.replaceAll(github.url, 'URL'))
      }
      const expected = await answers(before)
      const after = await before.restart()
      expect(await answers(after)).toEqual(expected)
      const ids = async () => {
        const { events } = await after.control('readIssue', { repo, number: 1 })
        return events.map(({ id }) => id)
      }
      const known = await ids()
      await after.control('labelIssue', { repo, number: 1, label: 'more' })
      expect(Math.max(...known)).toBeLessThan((await ids()).at(-1) ?? 0)
      await after.stop()
    })

    test('its file keeps no token and is for its owner only', async () => {
      const github = await startTestGitHub()
      const file = join(github.root, 'github.json')
      expect(readFileSync(file, 'utf8')).not.toContain(github.token)
      expect(statSync(file).mode & 0o777).toBe(0o600)
      await github.stop()
    })
  })

  describe('lists', () => {
    type Numbered = Readonly<{ number: number }>

    let github: TestGitHub

    beforeAll(async () => {
      github = await startTestGitHub()
      const issues = Array.from({ length: 125 }, (_, index) => ({ title: `Issue ${index + 1}` }))
      await github.control('createIssues', { repo: 'octo/app', issues })
    })
    afterAll(() => github.stop())

    function linkTo(rel: string, answer: TestAnswer<unknown>): string | null {
      const link = answer.headers.get('link') ?? ''
      return new RegExp(`<([^>]+)>; rel="${rel}"`).exec(link)?.[1] ?? null
    }

    const count = async (query: string) =>
      (await github.request<Numbered[]>(`/repos/octo/app/issues?${query}`)).body.length

    describe('pages of a list', () => {
      test('have 30 items unless told, and 100 at most', async () => {
        expect(await count('')).toBe(30)
        expect(await count('per_page=7')).toBe(7)
        expect(await count('per_page=1000')).toBe(100)
        expect(await count('per_page=0')).toBe(30)
        expect(await count('page=9')).toBe(0)
      })

      test.each(['', '/api/v3'])(
        'lead from one to the next until all were seen, under "%s"',
        async (prefix) => {
          const seen: number[] = []
          let next: string | null = `${prefix}/repos/octo/app/issues?per_page=50&state=open`
          const pages = []
          while (next !== null) {
            const answer: TestAnswer<Numbered[]> = await github.request<Numbered[]>(next)
            seen.push(...answer.body.map(({ number }) => number))
            pages.push({ next: linkTo('next', answer), last: linkTo('last', answer) })
            next = pages.at(-1)?.next ?? null
          }
          expect(seen).toEqual(Array.from({ length: 125 }, (_, index) => 125 - index))
          const { id } = await github.control('readRepository', { repo: 'octo/app' })
          const page = (n: number) =>
            `${github.url}${prefix}/repositories/${id}/issues?per_page=50&state=open&page=${n}`
          expect(pages).toEqual([
            { next: page(2), last: page(3) },
            { next: page(3), last: page(3) },
            { next: null, last: null },
          ])
        },
      )

      test('name the way back too, and none when there is but one', async () => {
        const answer = await github.request('/repos/octo/app/issues?per_page=100&page=2')
        expect(linkTo('prev', answer)).toMatch(/page=1$/)
        expect(linkTo('first', answer)).toMatch(/page=1$/)
        const single = await github.request('/repos/octo/app/labels')
        expect(single.headers.get('link')).toBeNull()
      })
    })

    describe('conditional requests', () => {
      test('answer 304 without body or Link while nothing changed, and cost nothing', async () => {
        const path = '/repos/octo/app/issues?per_page=50'
        const first = await github.request(path)
        const etag = first.headers.get('etag') ?? ''
        expect(etag).toMatch(/^W\/"[0-9a-f]{64}"$/)
        const used = Number(first.headers.get('x-ratelimit-used'))
        const again = await github.request(path, { headers: { 'if-none-match': etag } })
        expect([again.status, again.text, again.headers.get('link')]).toEqual([304, '', null])
        expect(again.headers.get('etag')).toBe(etag)
        expect(Number(again.headers.get('x-ratelimit-used'))).toBe(used)
        const strong = { 'if-none-match': `"other", ${etag.slice(2)}` }
        expect((await github.request(path, { headers: strong })).status).toBe(304)

        await github.control('labelIssue', { repo: 'octo/app', number: 125, label: 'changed' })
        const changed = await github.request(path, { headers: { 'if-none-match': etag } })
        expect([changed.status, Number(changed.headers.get('x-ratelimit-used'))]).toEqual([
          200,
          used + 1,
        ])
        const { entries } = await github.control('readRequests', { status: 304 })
        expect(entries.map(({ isConditional }) => isConditional)).toEqual([true, true])
      })

      test('differ by Link: another last page is another answer', async () => {
        const path = '/repos/octo/app/issues?direction=asc&per_page=10'
        const etag = (await github.request(path)).headers.get('etag') ?? ''
        const issues = Array.from({ length: 10 }, () => ({ title: 'More' }))
        await github.control('createIssues', { repo: 'octo/app', issues })
        const answer = await github.request(path, { headers: { 'if-none-match': etag } })
        expect(answer.status).toBe(200)
      })
    })
  })
})

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
