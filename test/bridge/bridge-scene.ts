// A place for one run of the reference bridge: a worktree, a fake harness on PATH, and the nine variables.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'

export const BRIDGE = resolve('plugin-assets/worker-bridge.py')
const FAKE_HARNESS_FOLDER = resolve('test/fixtures/bin')
// Not a version manager's shim, which would need more of PATH than a test gives.
export const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
  encoding: 'utf8',
}).trim()

/** What a bridge is given at least. */
export const NINE = [
  'CADUCEUS_ISSUE_NUMBER',
  'CADUCEUS_ISSUE_TITLE',
  'CADUCEUS_ISSUE_BODY',
  'CADUCEUS_ISSUE_REPO',
  'CADUCEUS_ISSUE_LABELS_JSON',
  'CADUCEUS_WORKTREE_PATH',
  'CADUCEUS_RUN_ID',
  'CADUCEUS_BRANCH_NAME',
  'CADUCEUS_CONTEXT_JSON',
]

export type Step = readonly [verb: string, ...rest: readonly unknown[]]

export type Scene = Readonly<{
  folder: string
  worktree: string
  /** TMPDIR of the bridge. */
  temporary: string
  /** Where the fake harness notes how it was called. */
  record: string
  environment: Readonly<Record<string, string>>
}>

export function makeScene(): Scene {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), 'bridge-')))
  const [worktree, temporary] = [join(folder, 'tree'), join(folder, 'tmp')]
  mkdirSync(worktree)
  mkdirSync(temporary)
  const record = join(folder, 'record.json')
  const environment = {
    PATH: [FAKE_HARNESS_FOLDER, dirname(PYTHON), '/usr/bin', '/bin'].join(delimiter),
    HOME: folder,
    TMPDIR: temporary,
    OPENCODE_FAKE_RECORD: record,
    CADUCEUS_ISSUE_NUMBER: '42',
    CADUCEUS_ISSUE_TITLE: 'A title nobody else has',
    CADUCEUS_ISSUE_BODY: 'A body nobody else has',
    CADUCEUS_ISSUE_REPO: 'octo/repo',
    CADUCEUS_ISSUE_LABELS_JSON: '["🤖 auto-fix","bug"]',
    CADUCEUS_WORKTREE_PATH: worktree,
    CADUCEUS_RUN_ID: 'run-7',
    CADUCEUS_BRANCH_NAME: 'automation/issue-42-run-7',
    CADUCEUS_CONTEXT_JSON: '{"comments":[]}',
  }
  return { folder, worktree, temporary, record, environment }
}

export function removeScene(scene: Scene): void {
  rmSync(scene.folder, { recursive: true, force: true })
}

export function script(...steps: readonly Step[]): Record<string, string> {
  return { OPENCODE_FAKE_SCRIPT: JSON.stringify(steps) }
}

export type Finished = Readonly<{
  code: number | null
  signal: string | null
  stdout: string
  stderr: string
}>

export type Started = Readonly<{
  child: ChildProcess
  /** Everything printed so far. */
  printed(): string
  /** Resolves when the process ended and nobody holds its output any more. */
  finished: Promise<Finished>
}>

/** Starts a bridge in its own process group, as the supervisor does. */
export function startBridge(
  environment: Readonly<Record<string, string>>,
  options: { argv?: readonly [string, ...string[]]; extraDescriptor?: number } = {},
): Started {
  // -I -S: without site-packages, so the standard library has to do.
  const [program, ...rest] = options.argv ?? [PYTHON, '-I', '-S', BRIDGE]
  const child = spawn(program, rest, {
    cwd: '/',
    env: environment,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', options.extraDescriptor ?? 'ignore'],
  })
  child.stdin?.end()
  let [stdout, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const finished = new Promise<Finished>((done, failed) => {
    child.once('error', failed)
    child.once('close', (code, signal) => done({ code, signal, stdout, stderr }))
  })
  return { child, printed: () => stdout + stderr, finished }
}

export function runBridge(
  scene: Scene,
  changes: Readonly<Record<string, string | undefined>> = {},
): Promise<Finished> {
  return startBridge(changed(scene, changes)).finished
}

/** The scene's environment with some variables set, or removed where `undefined`. */
export function changed(
  scene: Scene,
  changes: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const environment: Record<string, string> = { ...scene.environment }
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) delete environment[name]
    else environment[name] = value
  }
  return environment
}

export type HarnessRecord = {
  argv: string[]
  cwd: string
  pwd: string
  variables: string[]
  pid: number
  group: number
  session: number
  stdin: string
  descriptor3: boolean
  files: string[]
  prompt: string
}

export function wasCalled(scene: Scene): boolean {
  return existsSync(scene.record)
}

/** How the fake harness says it was called. */
export function readRecord(scene: Scene): HarnessRecord {
  // Written by our own fixture, in exactly this shape.
  return JSON.parse(readFileSync(scene.record, 'utf8')) as HarnessRecord
}

/** Waits until a condition holds, at most about 20 s; the expectation that follows tells. */
export async function until(condition: () => boolean): Promise<void> {
  for (let tries = 4_000; tries > 0 && !condition(); tries--) {
    await new Promise((done) => setTimeout(done, 5))
  }
}

const PAGE = readFileSync('docs/the-bridge.md', 'utf8')

/** The first fenced block of a language under a heading of docs/the-bridge.md. */
export function block(heading: string, language: string): string {
  const section = PAGE.split(`## ${heading}\n`)[1] ?? ''
  return new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(section)?.[1] ?? ''
}

/** The names in the first column of the first table under a heading of it. */
export function firstColumn(heading: string): string[] {
  const section = PAGE.split(`## ${heading}\n`)[1] ?? ''
  const table = /(?:^\|.*\n)+/m.exec(section)?.[0] ?? ''
  return [...table.matchAll(/^\| `?([\w ]+?)`? \|/gm)].map((row) => row[1] ?? '').slice(1)
}
