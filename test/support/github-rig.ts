import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from '@jest/globals'
import { type Fault, isFault } from '../../daemon/core/fault.ts'
import type { RateLimit } from '../../daemon/core/meta.ts'
import type { GitHub } from '../../daemon/core/ports.ts'
import { type GitHubDeps, type GitHubOptions, openGitHub } from '../../daemon/github/open-github.ts'
import type { Wait } from '../../daemon/github/rate-limits.ts'
import type { Control } from '../../embedded-github/control-client.ts'
import { startEmbeddedGitHub } from '../../embedded-github/server.ts'

/** A request as it arrived. */
export type SeenRequest = Readonly<{
  method: string
  /** Path and query as sent, still encoded. */
  url: string
  headers: IncomingHttpHeaders
  body: string
}>

export type Script = (request: SeenRequest, response: ServerResponse, count: number) => void

export type ScriptedServer = Readonly<{
  url: string
  seen: SeenRequest[]
  close: () => Promise<void>
}>

/**
 * A loopback server that does to each request whatever the script says, also what no server should.
 * `count` is 1 for the first request.
 */
export async function openScriptedServer(script: Script): Promise<ScriptedServer> {
  const seen: SeenRequest[] = []
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const request = {
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString(),
      }
      seen.push(request)
      script(request, response, seen.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A listening TCP server has an address of this kind, never a pipe's name.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Answers with JSON. */
export function replyJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
  response.end(JSON.stringify(body))
}

/** Shaped unlike any known token, so that only knowing it can hide it. */
export const TEST_TOKEN = ['plain', 'secret', 'of', 'an', 'old', 'server', '1234'].join('-')

/** What several processes share: the stored wait. */
export type SharedGate = { wait: Wait | null }

export type GitHubRig = Readonly<{
  server: ScriptedServer
  gate: SharedGate
  /** Our clock; the test moves it. */
  time: { now: number }
  /** What was told of each answer. */
  answers: { status: number; rate: RateLimit | null }[]
  cacheDirectory: string
  /** As another process would open it: same stored wait, same cache, nothing else. */
  open: (change?: Partial<GitHubOptions & GitHubDeps>) => GitHub
  close: () => Promise<void>
}>

/** A GitHub adapter before a scripted server, with a deadline short enough for tests that wait for it. */
export async function openGitHubRig(script: Script): Promise<GitHubRig> {
  const server = await openScriptedServer(script)
  const cacheDirectory = mkdtempSync(join(tmpdir(), 'github-cache-'))
  const gate: SharedGate = { wait: null }
  const time = { now: Date.now() }
  const answers: { status: number; rate: RateLimit | null }[] = []
  const open: GitHubRig['open'] = (change = {}) => {
    const deps: GitHubDeps = {
      clock: { now: () => time.now, sleep: () => Promise.resolve() },
      random: () => 0,
      gate: () => gate.wait,
      onWait: (wait) => {
        gate.wait = wait
      },
      onAnswer: (answer) => answers.push(answer),
    }
    const options: GitHubOptions = {
      apiBase: server.url,
      token: () => Promise.resolve(TEST_TOKEN),
      timeoutMs: 5_000,
      version: '1.2.3',
      maxPages: 5,
      cacheDirectory,
    }
    return openGitHub({ ...deps, ...change }, { ...options, ...change })
  }
  const close = async (): Promise<void> => {
    await server.close()
    rmSync(cacheDirectory, { recursive: true, force: true })
  }
  return { server, gate, time, answers, cacheDirectory, open, close }
}

/** As `openGitHubRig`, for a whole file: what was opened is closed after each test. */
export function rigOpener(): typeof openGitHubRig {
  let rigs: GitHubRig[] = []
  afterEach(async () => {
    await Promise.all(rigs.map((rig) => rig.close()))
    rigs = []
  })
  return async (script) => {
    const rig = await openGitHubRig(script)
    rigs.push(rig)
    return rig
  }
}

/** The fault a promise ends with; anything else fails the test. */
export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const outcome = await promise.then(
    (value) => ({ thrown: null, value }),
    (thrown: unknown) => ({ thrown, value: null }),
  )
  if (isFault(outcome.thrown)) return outcome.thrown
  throw new Error(`no fault, but ${JSON.stringify(outcome.value)} / ${String(outcome.thrown)}`)
}

export const REPOSITORY = { owner: 'octo', name: 'hello' } as const
export const ISSUE = { ...REPOSITORY, number: 7 } as const

/** GitHub's JSON of an issue, as far as we read it. */
export function issueJson(number: number, change: object = {}): object {
  return {
    number,
    title: `Issue ${number}`,
    body: 'text',
    user: { login: 'alice', id: 1 },
    labels: [{ name: 'bot' }],
    state: 'open',
    comments: 0,
    updated_at: '2026-01-02T03:04:05Z',
    repository_url: 'https://api.example.org/repos/octo/hello',
    ...change,
  }
}

export function commentJson(id: number, change: object = {}): object {
  return {
    id,
    body: `comment ${id}`,
    user: { login: 'alice', id: 1 },
    author_association: 'OWNER',
    created_at: '2026-01-02T03:04:05Z',
    updated_at: '2026-01-02T03:04:06Z',
    ...change,
  }
}

export function pullJson(number: number, change: object = {}): object {
  return {
    number,
    html_url: `https://example.org/octo/hello/pull/${number}`,
    state: 'open',
    merged_at: null,
    head: { ref: 'automation/issue-7-x', sha: 'a'.repeat(40), repo: { id: 42 } },
    base: { ref: 'develop' },
    title: 'A title',
    body: null,
    user: { id: 5, login: 'bot' },
    ...change,
  }
}

export type Json = Readonly<Record<string, unknown>>

/** An answer as tests look at it. `body` is what JSON held; null when there was none. */
export type TestAnswer<Body> = Readonly<{
  status: number
  headers: Headers
  body: Body
  text: string
}>

export type RequestOptions = Readonly<{
  method?: string
  body?: unknown
  /** null = none; default: the token of automation-bot. */
  token?: string | null
  headers?: Readonly<Record<string, string>>
}>

export type TestGitHub = Readonly<{
  url: string
  root: string
  /** Of automation-bot, which may write to the repository `octo/app`. */
  token: string
  control: Control
  /** Sends one request; the caller says what the answer's JSON is. Redirects are not followed. */
  request: <Body = Json>(path: string, options?: RequestOptions) => Promise<TestAnswer<Body>>
  /** Stops it and starts it again on the same root. */
  restart: () => Promise<TestGitHub>
  stop: () => Promise<void>
}>

/**
 * An embedded GitHub in this process with the repository `octo/app`, whose default branch `main` has one
 * commit. `stop` removes its folder.
 */
export async function startTestGitHub(now?: () => number): Promise<TestGitHub> {
  const root = mkdtempSync(join(tmpdir(), 'embedded-github-'))
  const github = await open(root, now)
  const { token } = await github.control('createToken', { login: 'automation-bot' })
  await github.control('createRepository', { repo: 'octo/app' })
  return assemble(github, root, token, now)
}

const open = (root: string, now?: () => number) =>
  startEmbeddedGitHub(now === undefined ? { root } : { root, clock: { now } })

function assemble(
  github: Awaited<ReturnType<typeof open>>,
  root: string,
  token: string,
  now?: () => number,
): TestGitHub {
  return {
    url: github.url,
    root,
    token,
    control: github.control,
    request: (path, options = {}) => send(github.url, path, { token, ...options }),
    restart: async () => {
      await github.close()
      return assemble(await open(root, now), root, token, now)
    },
    stop: async () => {
      await github.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

async function send<Body>(
  url: string,
  path: string,
  { method = 'GET', body, token, headers = {} }: RequestOptions,
): Promise<TestAnswer<Body>> {
  const response = await fetch(path.startsWith('http') ? path : `${url}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      'user-agent': 'test',
      ...(token === null || token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  const found: unknown = isJson ? JSON.parse(text) : null
  // The caller names what it expects; what is not so fails its assertions.
  return { status: response.status, headers: response.headers, body: found as Body, text }
}
