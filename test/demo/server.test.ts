import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import { fieldsOf } from '../../daemon/demo/api-messages.ts'
import { connectControl } from '../../daemon/demo/control-client.ts'
import { startTestGitHub, type TestAnswer, type TestGitHub } from '../support/embedded-github.ts'

const repo = 'octo/app'

let folder: string
let program: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'embedded-github-'))
  program = join(folder, 'github.mjs')
  await build({
    entryPoints: [join(import.meta.dirname, '../../daemon/serve-github.ts')],
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
    await before.control('createPull', { repo, title: 'T', body: 'b', head: 'topic', base: 'main' })
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
