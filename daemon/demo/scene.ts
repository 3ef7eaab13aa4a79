import { join, resolve } from 'node:path'
import { type Control, connectControl } from '../../embedded-github/control-client.ts'
import { type Build, bundleOf } from '../app/build.ts'
import { fault } from '../core/fault.ts'
import { openJournals } from '../state/journals.ts'
import { layoutOf } from '../state/layout.ts'
import { readStarted } from '../supervision/control-run.ts'
import {
  ensureDirectory,
  fileStatus,
  listDirectory,
  readFileBounded,
  writeFileAtomic,
} from '../sys/files.ts'
import { killOwned } from '../sys/find-processes.ts'
import { makeTemporaryFolder } from '../sys/paths.ts'
import { findProgram, runProcess } from '../sys/run-process.ts'
import { startProcess } from '../sys/start-process.ts'

/** The demo's repository and the people in it. */
export const DEMO = {
  repository: 'octo/timesheet',
  bot: 'automation-bot',
  author: 'alice',
  attempts: 3,
  labels: { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' },
} as const

/** Everything the demo stands on; `close` ends the embedded GitHub. */
export type DemoStage = Readonly<{
  root: string
  clone: string
  /** The bare repository behind the embedded GitHub. */
  origin: string
  stateDir: string
  control: Control
  issue: number
  /** For the program under demonstration: its whole world. */
  environment: Readonly<Record<string, string>>
  close: () => void
  /** Ends whatever is at work for the issue; only for a demo that is interrupted. */
  endRuns: () => void
}>

export type DemoStory = Readonly<{
  kind: 'code' | 'investigation'
  mode: 'fix' | 'fail' | 'investigate'
  dryRun: boolean
  /** Whether the daemon is killed at work, and so has to wait for writes whose effect is unknown. */
  crash: boolean
}>

/** Phases in which nothing more happens by itself. */
export const DEMO_ENDS: readonly string[] = [
  'awaiting_review',
  'done',
  'previewed',
  'failed',
  'needs_attention',
  'skipped',
]

/**
 * A write whose effect is unknown is repeated once its time is over and GitHub has had time to show it. The
 * embedded GitHub shows everything at once, and nobody wants to watch minutes pass.
 */
const SHORT_WAITS = { publish_settle_seconds: 1, git_timeout_seconds: 10 }

/** So that there is something to kill at work: on a fast machine all is over within a moment. */
const THINKING_SECONDS = '3'

/** How long git and the project's tests may take here. */
export const DEMO_TIMEOUT_MS = 60_000

/**
 * A small repository with a failing test on an embedded GitHub, an operator's clone, a labelled issue
 * and a configuration.
 * @param keep an empty or new folder, or null for a temporary one
 * Faults: usage/invalid, demo/refused, sys/spawn-failed, sys/process-timeout.
 */
export async function setDemoStage(
  build: Build,
  keep: string | null,
  story: DemoStory,
  environment: Readonly<Record<string, string>>,
): Promise<DemoStage> {
  requirePrograms(environment)
  // Absolute, for the embedded GitHub and the program work in other folders than we do.
  const root = keep === null ? makeTemporaryFolder('caduceus-demo-') : resolve(keep)
  if (fileStatus(join(root, 'github')) !== null) {
    const reason = `${root} holds an earlier demo; choose another folder.`
    throw fault('usage/invalid', { reason, command: 'demo' })
  }
  ensureDirectory(root)
  for (const name of ['github', 'home', 'projects/octo', 'state']) ensureDirectory(join(root, name))
  const github = await startGitHub(build, join(root, 'github'), environment)
  try {
    const { control, url } = github
    const { token } = await control('createToken', { login: DEMO.bot })
    const { gitPath } = await control('createRepository', {
      repo: DEMO.repository,
      files: projectFiles(join(build.templates, 'demo', 'project')),
    })
    for (const name of Object.values(DEMO.labels)) {
      await control('createLabel', { repo: DEMO.repository, name, color: '7C3AED' })
    }
    const issue = await control('createIssue', {
      repo: DEMO.repository,
      author: DEMO.author,
      ...issueText(build),
      labels: [DEMO.labels[story.kind]],
    })
    const clone = join(root, 'projects', DEMO.repository)
    const world = worldOf(root, build, token, story, environment)
    await runGit(['clone', '--quiet', gitPath, clone], root, world)
    writeFileAtomic(join(root, 'config.yaml'), configuration(root, build, url, story))
    return {
      root,
      clone,
      origin: gitPath,
      stateDir: join(root, 'state'),
      control,
      issue: issue.number,
      environment: world,
      close: github.close,
      endRuns: () => endRuns(join(root, 'state')),
    }
  } catch (thrown) {
    github.close()
    throw thrown
  }
}

function endRuns(stateDir: string): void {
  const journals = openJournals(stateDir)
  for (const runId of journals.list()) {
    const journal = journals.read(runId)
    if (journal === null) continue
    const { directory } = layoutOf(stateDir).run(runId)
    const started = readStarted({ runId, directory, treePath: journal.treePath })
    for (const leader of [journal.runner, started?.supervisor, started?.worker]) {
      if (leader) killOwned(leader)
    }
  }
}

function requirePrograms(environment: Readonly<Record<string, string>>): void {
  const missing = ['git', 'python3'].filter((name) => findProgram(name, environment) === null)
  if (missing.length === 0) return
  throw fault('demo/refused', { reason: `it needs ${missing.join(' and ')} on PATH` })
}

/** The embedded GitHub as a process of its own; it ends when its standard input closes, so with us. */
async function startGitHub(
  build: Build,
  root: string,
  environment: Readonly<Record<string, string>>,
): Promise<{ control: Control; url: string; close: () => void }> {
  const child = await startProcess({
    argv: [process.execPath, bundleOf(build, 'embedded-github'), '--root', root],
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const line = await firstLine(child.stdout)
  const url = /"url":"([^"]+)"/.exec(line)?.[1]
  if (url === undefined)
    throw fault('demo/refused', { reason: 'the embedded GitHub did not start' })
  return {
    url,
    control: connectControl(url),
    close: () => {
      child.stdin?.destroy()
      child.stdout?.destroy()
      child.unref()
    },
  }
}

async function firstLine(stream: AsyncIterable<unknown> | null): Promise<string> {
  let text = ''
  for await (const piece of stream ?? []) {
    text += String(piece)
    if (text.includes('\n')) break
  }
  return text
}

function projectFiles(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listDirectory(folder).map((name) => [name, readText(join(folder, name))]),
  )
}

function issueText(build: Build): { title: string; body: string } {
  const [first = '', ...rest] = readText(join(build.templates, 'demo', 'issue.md')).split('\n')
  return { title: first.replace(/^# /, ''), body: rest.join('\n').trim() }
}

function readText(path: string): string {
  const bytes = readFileBounded(path, 1024 * 1024)
  if (bytes === null) throw fault('sys/io', { operation: 'Reading', path, reason: 'it is missing' })
  return bytes.toString('utf8')
}

function worldOf(
  root: string,
  build: Build,
  token: string,
  story: DemoStory,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return {
    PATH: `${join(build.templates, 'demo')}:${environment['PATH'] ?? ''}`,
    HOME: join(root, 'home'),
    LANG: environment['LANG'] ?? 'C.UTF-8',
    CADUCEUS_CONFIG: join(root, 'config.yaml'),
    CADUCEUS_GITHUB_TOKEN: token,
    OPENCODE_DEMO_MODE: story.mode,
    ...(story.crash ? { OPENCODE_DEMO_SECONDS: THINKING_SECONDS } : {}),
    ...(story.dryRun ? { CADUCEUS_DRY_RUN: '1' } : {}),
  }
}

/** JSON is YAML, so no text needs quoting of our own. */
function configuration(root: string, build: Build, url: string, { crash }: DemoStory): string {
  const config = {
    watched_repos: [DEMO.repository],
    api_base: url,
    workdir_base: join(root, 'projects'),
    state_dir: join(root, 'state'),
    worker_command: ['python3', join(build.root, 'plugin-assets', 'worker-bridge.py')],
    max_retries_per_issue: DEMO.attempts,
    retry_backoff_seconds: 1,
    ...(crash ? SHORT_WAITS : {}),
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

/** What git prints. Faults: demo/refused when it fails. */
export async function runGit(
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const result = await runProcess({
    argv: ['git', ...args],
    cwd,
    env: environment,
    timeoutMs: DEMO_TIMEOUT_MS,
    maxOutputBytes: 1024 * 1024,
  })
  if (result.code === 0) return result.stdout.toString('utf8')
  throw fault('demo/refused', { reason: `git ${args[0]}: ${result.stderr.toString('utf8')}` })
}
