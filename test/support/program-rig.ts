import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Status } from '../../daemon/app/read-status.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import type { Meta } from '../../daemon/core/meta.ts'
import type { QueueEntry } from '../../daemon/core/queue-state.ts'
import { openJournals } from '../../daemon/state/journals.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { layoutOf, type StateLayout } from '../../daemon/state/layout.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { writeFileAtomic } from '../../daemon/sys/files.ts'
import { cwdOf, environmentOf, listProcesses } from '../../daemon/sys/process-identity.ts'
import { type Control, connectControl } from '../../embedded-github/control-client.ts'
import { startEmbeddedGitHub } from '../../embedded-github/server.ts'
import { waitUntil } from './processes.ts'

// The built program as users start it, against the embedded GitHub: real processes, real git, real files.

export const LABELS = { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' } as const
export const BOT = 'automation-bot'

/** How long processes have for leaving by themselves when a test is over. */
const LEAVE_MS = 5000

export const PROGRAM = join(import.meta.dirname, '..', '..', 'dist', 'caduceus.mjs')

export type Finished = Readonly<{ code: number; stdout: string; stderr: string }>
export type Started = Readonly<{ pid: number; finished: Promise<Finished> }>

export type ProgramRig = Readonly<{
  dir: string
  repo: string
  control: Control
  /** Of the embedded GitHub, as `api_base`. */
  apiBase: string
  clock: SharedClock
  layout: StateLayout
  /** Bare repository of the embedded GitHub. */
  origin: string
  clone: string
  token: string
  /** Environment of the program; changes apply to the next run. */
  env: Record<string, string>
  /** Runs `caduceus …args` to its end. */
  run: (...args: readonly string[]) => Promise<Finished>
  /** The same, to look at while it runs. */
  start: (...args: readonly string[]) => Started
  /** `run --now --wait`. */
  tick: () => Promise<Finished>
  /** `status --json`, which must succeed. */
  status: () => Promise<Status>
  /** Replaces the bridge by a program text that begins with its `#!` line. */
  setBridge: (text: string) => void
  /** Merges keys into the configuration file. */
  setConfig: (keys: Readonly<Record<string, unknown>>) => void
  openIssue: (
    issue?: Readonly<{ title?: string; body?: string | null; labels?: readonly string[] }>,
  ) => Promise<number>
  entry: (number: number) => QueueEntry | undefined
  meta: () => Meta
  journals: () => readonly Journal[]
  log: () => readonly Record<string, unknown>[]
  git: (...args: readonly string[]) => Promise<string>
  close: () => Promise<void>
}>

export type RigOptions = Readonly<{
  repo?: string
  defaultBranch?: string
  files?: Readonly<Record<string, string>>
  config?: Readonly<Record<string, unknown>>
  bridge?: string
  /** false = the operator has no clone. */
  clone?: boolean
}>

/** A bridge that edits `app.txt` and reports success; the text is Python, as the reference bridge is. */
export const GOOD_BRIDGE = bridge(`
open('app.txt', 'a').write('mended\\n')
result({})
`)

/** A Python bridge: `body` may call `result(fields)`, which fills in the required fields. */
export function bridge(body: string): string {
  return `#!/usr/bin/env python3
import json, os, sys
tree = os.environ['CADUCEUS_WORKTREE_PATH']
os.chdir(tree)
def result(fields):
    whole = {'status': 'success', 'summary': 'Mended the application.', 'commit_message': 'fix(app): mend it', 'pull_request_title': 'fix(app): mend it'}
    whole.update(fields)
    with open('worker-result.json', 'w') as stream:
        json.dump(whole, stream)
${body}`
}

export async function openProgramRig(options: RigOptions = {}): Promise<ProgramRig> {
  const dir = mkdtempSync(join(tmpdir(), 'program-'))
  const repo = options.repo ?? 'octo/app'
  const clock = createSharedClock(dir)
  for (const name of ['github', 'home', 'projects', 'bin']) mkdirSync(join(dir, name))
  const github = await startEmbeddedGitHub({ root: join(dir, 'github'), clock })
  const control = connectControl(github.url)
  const { token } = await control('createToken', { login: BOT })
  const { gitPath } = await control('createRepository', {
    repo,
    files: options.files ?? { 'app.txt': 'broken\n', 'README.md': '# App\n' },
    ...(options.defaultBranch === undefined ? {} : { defaultBranch: options.defaultBranch }),
  })
  for (const name of Object.values(LABELS))
    await control('createLabel', { repo, name, color: '7C3AED' })

  const stateDir = join(dir, 'state')
  const layout = layoutOf(stateDir)
  const env: Record<string, string> = {
    PATH: `${join(dir, 'bin')}:${process.env['PATH'] ?? ''}`,
    HOME: join(dir, 'home'),
    LANG: 'C.UTF-8',
    CADUCEUS_CONFIG: join(dir, 'config.yaml'),
    CADUCEUS_GITHUB_TOKEN: token,
    ...clock.env,
  }
  const bridgePath = join(dir, 'bridge')
  let config: Readonly<Record<string, unknown>> = {
    watched_repos: [repo],
    api_base: github.url,
    workdir_base: join(dir, 'projects'),
    state_dir: stateDir,
    worker_command: bridgePath,
    ...options.config,
  }
  const setConfig = (keys: Readonly<Record<string, unknown>>): void => {
    config = { ...config, ...keys }
    writeFileSync(join(dir, 'config.yaml'), JSON.stringify(config))
  }
  const setBridge = (text: string): void => {
    writeFileSync(bridgePath, text)
    chmodSync(bridgePath, 0o755)
  }
  setConfig({})
  setBridge(options.bridge ?? GOOD_BRIDGE)
  const git = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('git', [...args], { env, maxBuffer: 64 * 1024 * 1024 })).stdout
  const clone = join(dir, 'projects', repo)
  if (options.clone ?? true) {
    mkdirSync(dirname(clone), { recursive: true })
    await git('clone', '--quiet', gitPath, clone)
  }
  const start: ProgramRig['start'] = (...args) => startProgram(args, env)
  const run: ProgramRig['run'] = async (...args) => start(...args).finished
  const store = openJsonStore({ clock: systemClock }, stateDir)
  const journals = openJournals(stateDir)
  return {
    dir,
    repo,
    control,
    apiBase: github.url,
    clock,
    layout,
    origin: gitPath,
    clone,
    token,
    env,
    run,
    start,
    tick: async () => run('run', '--now', '--wait'),
    status: async () => {
      const { code, stdout, stderr } = await run('status', '--json')
      if (code !== 0) throw new Error(`status ended with ${code}: ${stdout}${stderr}`)
      return JSON.parse(stdout) as Status
    },
    setBridge,
    setConfig,
    git,
    openIssue: async (issue = {}) => {
      const { number } = await control('createIssue', {
        repo,
        author: 'alice',
        title: issue.title ?? 'The application is broken',
        body: issue.body === undefined ? 'It says "broken".' : issue.body,
        labels: issue.labels ?? [LABELS.code],
      })
      return number
    },
    entry: (number) => store.readQueue().entries[`${repo}#${number}`.toLowerCase()],
    meta: () => store.readMeta(),
    journals: () => journals.list().flatMap((runId) => journals.read(runId) ?? []),
    log: () =>
      readFileSync(layout.log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    close: async () => {
      await github.close()
      try {
        // A runner that has settled its run is on its way out.
        await waitUntil('the processes have left', () => processesIn(dir).length === 0, LEAVE_MS)
      } catch (late) {
        // What they met, before it is removed: why they are still there.
        const met = existsSync(layout.log) ? readFileSync(layout.log, 'utf8').split('\n') : []
        const last = met.filter((line) => line.includes('"warn"') || line.includes('fault'))
        throw new Error(`processes are left; the log says:\n${last.slice(-20).join('\n')}`, {
          cause: late,
        })
      } finally {
        for (const pid of processesIn(dir)) killQuietly(pid)
        rmSync(dir, { recursive: true, force: true })
      }
    },
  }
}

function startProgram(args: readonly string[], env: Readonly<Record<string, string>>): Started {
  const options = { env, maxBuffer: 16 * 1024 * 1024, timeout: 120_000 }
  let pid = 0
  const finished = new Promise<Finished>((resolve) => {
    const child = execFile(process.execPath, [PROGRAM, ...args], options, (_, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr })
    })
    child.stdin?.end()
    pid = child.pid ?? 0
  })
  return { pid, finished }
}

/** It may have ended between the look and the blow. */
export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Then there is nothing left to do.
  }
}

/** Processes that work in the folder or were started for it. */
function processesIn(dir: string): readonly number[] {
  const isOurs = (pid: number): boolean =>
    Boolean(cwdOf(pid)?.startsWith(dir)) ||
    commandLine(pid).includes(dir) ||
    Object.values(environmentOf(pid) ?? {}).some((value) => value.includes(dir))
  return listProcesses()
    .filter(({ pid, isZombie }) => pid !== process.pid && !isZombie && isOurs(pid))
    .map(({ pid }) => pid)
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** Every file under a folder, as text by its path; for searches. */
export function textsUnder(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
  return new Map(
    names
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path, readFileSync(path, 'latin1')]),
  )
}

/** One wall clock for all processes of a test that are started with `env`. */
export type SharedClock = Readonly<{
  env: Readonly<{ NODE_OPTIONS: string; TEST_CLOCK_FILE: string }>
  advance(ms: number): void
  now(): number
}>

/** A clock that starts at the real time; its file lies in `dir`, which the test removes. */
export function createSharedClock(dir: string): SharedClock {
  const file = join(dir, 'clock-offset')
  const preload = new URL('./shifted-clock.mjs', import.meta.url).href
  let offset = 0
  const publish = (): void => writeFileAtomic(file, String(offset))
  publish()
  return {
    env: { NODE_OPTIONS: `--import=${preload}`, TEST_CLOCK_FILE: file },
    advance(ms) {
      offset += ms
      publish()
    },
    now: () => Date.now() + offset,
  }
}
