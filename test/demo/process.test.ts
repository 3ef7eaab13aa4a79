import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import { connectControl } from '../../daemon/demo/control-client.ts'
import { fieldsOf } from '../../daemon/demo/request-fields.ts'
import { startTestGitHub } from '../support/embedded-github.ts'

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
