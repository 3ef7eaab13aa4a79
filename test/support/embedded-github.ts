import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Control } from '../../daemon/demo/control-client.ts'
import { startEmbeddedGitHub } from '../../daemon/demo/server.ts'

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
