import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from '@jest/globals'
import type { StatusReport } from '../../daemon/app/read-status.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import { parseRunFile, RUN_FILES } from '../../daemon/core/supervision-files.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import type { LoggedRequest } from '../../embedded-github/test-request-log.ts'
import { waitUntil } from './processes.ts'
import { BOT, bridge, type Finished, killQuietly, LABELS, type ProgramRig } from './program-rig.ts'

// What a test looks at after the program ran, and how it steers what the program meets.

/** Everything the embedded GitHub holds: its content, byte for byte, and all refs. */
export async function readWorld(
  rig: ProgramRig,
  ...repos: readonly string[]
): Promise<readonly string[]> {
  const refs = [rig.repo, ...repos].map(async (repo) => {
    const { gitPath } = await rig.control('readRepository', { repo })
    return rig.git('-C', gitPath, 'for-each-ref')
  })
  return [
    readFileSync(join(rig.dir, 'github', 'github.json'), 'utf8'),
    ...(await Promise.all(refs)),
  ]
}

/** Requests that were no reads, in their order: `POST /repos/octo/app/pulls`. */
export async function writesOf(rig: ProgramRig): Promise<readonly string[]> {
  const { entries } = await rig.control('readRequests', {})
  return entries.filter(({ method }) => method !== 'GET').map(describeRequest)
}

export function describeRequest({ method, path }: LoggedRequest): string {
  return `${method} ${path}`
}

/** Branches the daemon made on the remote, by name. */
export async function branchesOf(rig: ProgramRig, repo = rig.repo): Promise<readonly string[]> {
  const { branches } = await rig.control('readRepository', { repo })
  return Object.keys(branches).filter((name) => name.startsWith('automation/'))
}

export async function reportOf(rig: ProgramRig): Promise<StatusReport> {
  const { report } = await rig.status()
  if (report === null) throw new Error('status has no report')
  return report
}

/** One more repository on GitHub with both labels; the operator clones it unless told otherwise. */
export async function addRepository(
  rig: ProgramRig,
  repo: string,
  options: Readonly<{ isCloned?: boolean; files?: Readonly<Record<string, string>> }> = {},
): Promise<Readonly<{ gitPath: string; clone: string }>> {
  const { gitPath } = await rig.control('createRepository', {
    repo,
    files: options.files ?? { 'app.txt': 'broken\n' },
  })
  for (const name of Object.values(LABELS)) await rig.control('createLabel', { repo, name })
  const clone = join(rig.dir, 'projects', repo)
  mkdirSync(dirname(clone), { recursive: true })
  if (options.isCloned ?? true) await rig.git('clone', '--quiet', gitPath, clone)
  return { gitPath, clone }
}

/** Path, kind, time and content of everything in a folder: equal before and after = nobody wrote there. */
export function fingerprintOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => {
      const path = join(folder, name)
      const status = lstatSync(path)
      const content = status.isSymbolicLink()
        ? readlinkSync(path)
        : status.isFile()
          ? createHash('sha256').update(readFileSync(path)).digest('hex')
          : ''
      return `${name} ${status.mode} ${status.ino} ${status.mtimeMs} ${content}`
    })
    .sort()
}

/** Where the checkouts of a repository's runs lie. */
export function treesOf(rig: ProgramRig, repo = rig.repo): readonly string[] {
  const folder = join(rig.layout.directories.worktrees, repo)
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
}

/** Python for `result(…)` with fields given as JSON. */
export function resultOf(fields: Readonly<Record<string, unknown>>): string {
  return `result(json.loads(${JSON.stringify(JSON.stringify(fields))}))`
}

/** A bridge that does what is said for the issue's number; for others it mends the application. */
export function bridgeByIssue(
  bodies: Readonly<Record<number, string>>,
  otherwise = "open('app.txt', 'a').write('mended\\n')\nresult({})",
): string {
  const branches = Object.entries(bodies).map(
    ([number, body]) => `if number == ${number}:\n${indent(body)}\n    sys.exit(0)`,
  )
  return bridge(
    ["number = int(os.environ['CADUCEUS_ISSUE_NUMBER'])", ...branches, otherwise].join('\n'),
  )
}

const indent = (text: string): string => text.trim().replaceAll(/^/gm, '    ')

/** A bridge that tells of its start, waits for `openGate`, does its work and tells of its end. */
export function gatedBridge(work = "open('app.txt', 'a').write('mended\\n')\nresult({})"): string {
  return bridge(`
import time
home = os.environ['HOME']
name = os.environ['CADUCEUS_ISSUE_REPO'].replace('/', '~') + '~' + os.environ['CADUCEUS_ISSUE_NUMBER']
def tell(what):
    stream = os.open(home + '/workers', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(stream, (what + ' ' + name + '\\n').encode())
    os.close(stream)
tell('start')
deadline = time.monotonic() + 60
while not os.path.exists(home + '/gate') and time.monotonic() < deadline:
    time.sleep(0.02)
${work}
tell('end')
`)
}

/** What gated bridges have told: `start octo~app~1`. */
export function toldBy(rig: ProgramRig): readonly string[] {
  const path = join(rig.dir, 'home', 'workers')
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}

/** Waits until so many gated bridges have started. */
export async function startedWorkers(rig: ProgramRig, count: number): Promise<readonly string[]> {
  return waitUntil(`${count} worker(s) started`, () => {
    const told = toldBy(rig).filter((line) => line.startsWith('start'))
    return told.length >= count && told
  })
}

/** The most workers that were at work at one time. */
export function greatestOverlap(told: readonly string[]): number {
  let now = 0
  let most = 0
  for (const line of told) {
    now += line.startsWith('start') ? 1 : -1
    most = Math.max(most, now)
  }
  return most
}

/** Lets gated bridges go on. */
export function openGate(rig: ProgramRig): void {
  writeFileSync(join(rig.dir, 'home', 'gate'), '')
}

/** Later gated bridges wait again. */
export function closeGate(rig: ProgramRig): void {
  rmSync(join(rig.dir, 'home', 'gate'))
}

/** Waits until no run is under way. */
export async function allSettled(rig: ProgramRig): Promise<void> {
  await waitUntil('all runs have settled', () =>
    rig.journals().every(({ stage }) => stage === 'settled'),
  )
}

/** A run with nothing to tell. */
export const QUIET = { code: 0, stdout: '', stderr: '' }

/** Runs a command that cannot do its work, and returns the one line it says. */
export async function refusalOf(rig: ProgramRig, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await rig.run(...args)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^caduceus: [^\n]+\n$/)
  return stderr.slice('caduceus: '.length, -1)
}

/** One tick, later than any backoff ends. */
export async function tickLater(rig: ProgramRig): Promise<Finished> {
  rig.clock.advance(3_600_000)
  return rig.tick()
}

/** What `status` tells as recent errors, without their dates. */
export async function errorsOf(rig: ProgramRig): Promise<readonly string[]> {
  const { report } = await rig.status()
  return (report?.recent_errors ?? []).map((line) => line.replace(/^\S+ /, ''))
}

/** Whatever happened on the way: one branch with one commit, one pull request, one comment, one close. */
export async function expectPublishedOnce(rig: ProgramRig, number: number): Promise<void> {
  const entry = rig.entry(number)
  expect(entry).toMatchObject({ phase: 'awaiting_review', attempts: 0, runId: null })
  const issues = await rig.control('listIssues', { repo: rig.repo })
  const issue = issues.find((one) => one.number === number)
  expect(issue).toMatchObject({ state: 'closed', labels: [], closedBy: BOT })
  expect(issue?.comments.map(({ author }) => author)).toEqual([BOT])
  const ours = issue?.events.filter(({ actor }) => actor === BOT).map(({ kind }) => kind)
  expect(ours?.sort()).toEqual(['closed', 'cross-referenced', 'unlabeled'])

  const prefix = `automation/issue-${number}-`
  const pulls = issues.filter(({ pull }) => pull?.headBranch.startsWith(prefix))
  expect(pulls.map((pull) => [pull.number, pull.state])).toEqual([[entry?.pull?.number, 'open']])
  const { branches } = await rig.control('readRepository', { repo: rig.repo })
  const [branch, ...others] = Object.keys(branches).filter((name) => name.startsWith(prefix))
  expect({ branch, others }).toEqual({ branch: pulls[0]?.pull?.headBranch, others: [] })
  const count = await rig.git('-C', rig.origin, 'rev-list', '--count', `main..${branch}`)
  expect(count).toBe('1\n')
}

// The processes behind the newest run of a rig, as its own files name them.

export type RunProcesses = Readonly<{ runner: number; supervisor: number; worker: number }>

/** Waits until all three are on record. */
export async function processesOfRun(rig: ProgramRig): Promise<RunProcesses> {
  return waitUntil('runner, supervisor and worker are on record', () => {
    const runner = newestRun(rig).runner?.pid
    const started = startedOf(rig)
    const worker = started?.worker?.pid
    return (
      runner !== undefined &&
      started !== null &&
      worker !== undefined && { runner, supervisor: started.supervisor.pid, worker }
    )
  })
}

export function newestRun(rig: ProgramRig): Journal {
  const newest = rig.journals().toSorted((a, b) => (a.runId < b.runId ? 1 : -1))[0]
  if (newest === undefined) throw new Error('there was no run')
  return newest
}

function startedOf(rig: ProgramRig) {
  const path = join(rig.layout.run(newestRun(rig).runId).directory, RUN_FILES.started)
  return existsSync(path) ? parseRunFile('started', readFileSync(path, 'utf8')) : null
}

/** Kills processes and waits until they are gone. */
export async function killNow(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) killQuietly(pid)
  await waitUntil('the killed are gone', () => pids.every((pid) => identifyProcess(pid) === null))
}
