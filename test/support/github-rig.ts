import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from '@jest/globals'
import { type Fault, isFault } from '../../daemon/core/fault.ts'
import type { RateLimit } from '../../daemon/core/meta.ts'
import type { GitHub } from '../../daemon/core/ports.ts'
import { type GitHubDeps, type GitHubOptions, openGitHub } from '../../daemon/github/open-github.ts'
import type { Wait } from '../../daemon/github/rate-limits.ts'
import { openScriptedServer, type Script, type ScriptedServer } from './scripted-server.ts'

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
