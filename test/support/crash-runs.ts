import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from '@jest/globals'
import type { Executor } from '../../daemon/core/executor.ts'
import type { Garbage } from '../../daemon/core/garbage.ts'
import type { Claims, Git, GitHub, Journals, Store } from '../../daemon/core/ports.ts'
import { isLocked } from '../../daemon/sys/kernel-lock.ts'
import { waitUntil } from './processes.ts'
import { BOT, type Finished, LABELS, type ProgramRig } from './program-rig.ts'
import { expectPublishedOnce, QUIET, treesOf } from './program-views.ts'

// Killing the program's processes at their effects, and what must be true when others have gone on.

/**
 * What a method of a port does to the world. `acts`: every job for code does it; `looks`: it changes nothing
 * that outlives the process; `rare`: it acts, but only where something has gone wrong or time has passed.
 */
type Kind = 'acts' | 'looks' | 'rare'

/** Every method there is; a new one has to be judged here, or the types and a test say so. */
export const EFFECTS = {
  github: {
    viewer: 'looks',
    repository: 'looks',
    accessibleRepositories: 'looks',
    pollLabel: 'looks',
    pollChanges: 'looks',
    issue: 'looks',
    comments: 'looks',
    timeline: 'looks',
    pullRequest: 'looks',
    pullRequestsByHead: 'looks',
    serverTime: 'looks',
    createPullRequest: 'acts',
    createComment: 'acts',
    removeLabel: 'acts',
    closeIssue: 'acts',
    deleteComment: 'rare',
    reopenIssue: 'rare',
  } satisfies Record<keyof GitHub, Kind>,
  git: {
    inspectClone: 'looks',
    hasCommit: 'looks',
    remoteBranch: 'looks',
    describeDifference: 'looks',
    fetchBase: 'acts',
    createTree: 'acts',
    captureTree: 'acts',
    commitTree: 'acts',
    pushNewBranch: 'acts',
    removeTree: 'acts',
    tidyStore: 'acts',
    archiveTree: 'rare',
  } satisfies Record<keyof Git, Kind>,
  store: {
    readQueue: 'looks',
    readMeta: 'looks',
    exists: 'looks',
    changeQueue: 'acts',
    changeMeta: 'acts',
  } satisfies Record<keyof Store, Kind>,
  journals: { read: 'looks', list: 'looks', write: 'acts' } satisfies Record<keyof Journals, Kind>,
  claims: {
    isHeld: 'looks',
    list: 'looks',
    take: 'acts',
    inherit: 'acts',
  } satisfies Record<keyof Claims, Kind>,
  executor: {
    watch: 'looks',
    launch: 'acts',
    cancel: 'rare',
    killSupervisor: 'rare',
    reap: 'rare',
  } satisfies Record<keyof Executor, Kind>,
  garbage: { list: 'looks', isInUse: 'looks', remove: 'acts' } satisfies Record<
    keyof Garbage,
    Kind
  >,
} as const

const KINDS: ReadonlyMap<string, Kind> = new Map(
  Object.entries(EFFECTS).flatMap(([port, methods]) =>
    Object.entries(methods).map(([method, kind]): [string, Kind] => [`${port}.${method}`, kind]),
  ),
)

/** Names of a kind, in alphabetical order. */
export function effectsOfKind(kind: Kind): readonly string[] {
  return [...KINDS].flatMap(([name, of]) => (of === kind ? [name] : [])).sort()
}

/** One crossing of a port: `git.createTree before`. */
export type Recording = Readonly<{ tick: readonly string[]; runner: readonly string[] }>

/** Runs the rig's program with the preload that counts effects; other runs are not touched by it. */
export async function underPreload<T>(
  rig: ProgramRig,
  env: Readonly<Record<string, string>>,
  act: () => Promise<T>,
): Promise<T> {
  const { NODE_OPTIONS = '' } = rig.env
  const preload = new URL('./crash-at-effect.mjs', import.meta.url).href
  Object.assign(rig.env, env, { NODE_OPTIONS: `${NODE_OPTIONS} --import=${preload}` })
  try {
    return await act()
  } finally {
    for (const name of Object.keys(env)) delete rig.env[name]
    rig.env['NODE_OPTIONS'] = NODE_OPTIONS
  }
}

/** What the preload is told to strike one kind of process at one effect. */
export function crashPlace(bundle: string, place: string): Readonly<Record<string, string>> {
  return { TEST_CRASH_PROCESS: `/${bundle}\\.mjs`, TEST_CRASH_AT: place }
}

/** One call of the program in which a process of one bundle is killed at an effect. */
export async function crashAt(
  rig: ProgramRig,
  bundle: string,
  place: string,
  args: readonly string[] = ['run', '--now'],
): Promise<Finished> {
  return underPreload(rig, crashPlace(bundle, place), async () => rig.run(...args))
}

/** One tick and all it starts, undisturbed; what each process did, in order. */
export async function recordTick(rig: ProgramRig): Promise<Recording> {
  const log = join(rig.dir, 'effects')
  writeFileSync(log, '')
  const pid = await underPreload(rig, { TEST_EFFECT_LOG: log }, async () => {
    const tick = rig.start('run', '--now', '--wait')
    // 1 = an issue newly needs attention.
    expect([0, 1]).toContain((await tick.finished).code)
    return tick.pid
  })
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  const of = (isTick: boolean): readonly string[] =>
    lines
      .map((line) => line.split(' '))
      .filter(([process]) => (Number(process) === pid) === isTick)
      .map(([, , name, when]) => `${name} ${when}`)
  return { tick: of(true), runner: of(false) }
}

/**
 * Every place before and after something that acts, as the preload names it: `git.createTree#1:before`.
 * @param recording crossings of one process
 */
export function placesOf(recording: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  return recording.flatMap((crossing) => {
    const [name = '', when] = crossing.split(' ')
    const kind = KINDS.get(name)
    if (kind === undefined) throw new Error(`nobody has said what ${name} does`)
    const count = (counts.get(crossing) ?? 0) + 1
    counts.set(crossing, count)
    return kind === 'looks' ? [] : [`${name}#${count}:${when}`]
  })
}

/** The distinct names in places. */
export function namesIn(places: readonly string[]): readonly string[] {
  return [...new Set(places.map((place) => place.replace(/#.*/, '')))].sort()
}

/** The first and the last time that each name is met, before and after it. */
export function firstAndLast(places: readonly string[]): readonly string[] {
  const countIn = (place: string): number => Number(/#(\d+)/.exec(place)?.[1])
  return places.filter((place) => {
    const same = places.filter((one) => one.replace(/\d+/, '') === place.replace(/\d+/, ''))
    return countIn(place) === 1 || countIn(place) === Math.max(...same.map(countIn))
  })
}

/** A worker of one moment: tells that it was started, edits a file and reports success. */
export const QUICK_WORKER = shellWorker('')

/** The same, but it waits until there is a file `gate` in the home folder. */
export const GATED_WORKER = shellWorker('until [ -e "$HOME/gate" ]; do sleep 0.05; done\n')

function shellWorker(wait: string): string {
  const result = JSON.stringify({
    status: 'success',
    summary: 'Mended.',
    commit_message: 'fix(app): mend it',
    pull_request_title: 'fix(app): mend it',
  })
  return `#!/bin/sh
cd "$CADUCEUS_WORKTREE_PATH" || exit 1
echo "$CADUCEUS_ISSUE_NUMBER" >>"$HOME/started"
${wait}echo mended >>app.txt
echo '${result}' >worker-result.json
`
}

/** How often workers were started for an issue. */
export function startsOf(rig: ProgramRig, number: number): number {
  const path = join(rig.dir, 'home', 'started')
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  return lines.filter((line) => line === String(number)).length
}

/**
 * One tick starts a run for each place, and the runner of each dies there. Returns the issues, each with the
 * place at which its runner died.
 */
export async function killRunnersAt(
  rig: ProgramRig,
  places: readonly string[],
  label: string,
): Promise<ReadonlyMap<number, string>> {
  const numbers: number[] = []
  for (const _ of places) numbers.push(await rig.openIssue({ labels: [label] }))
  const plan = join(rig.dir, `plan-${numbers[0]}`)
  writeFileSync(plan, places.join('\n'))
  const env = { TEST_CRASH_PROCESS: '/runner\\.mjs', TEST_CRASH_PLAN: plan }
  await underPreload(rig, env, async () => expect(await rig.run('run', '--now')).toEqual(QUIET))
  await nobodyAtWork(rig)
  const keys = new Map(rig.journals().map(({ runId, key }) => [runId, key.number]))
  const died = places.map((place, line): [number, string] => {
    const runId = readFileSync(`${plan}.${line}.taken`, 'utf8').split(' ').at(-1) ?? ''
    if (!existsSync(`${plan}.${line}.dead`)) {
      const told = rig.log().filter((one) => one['runId'] === runId)
      throw new Error(`no runner died at ${place}: ${JSON.stringify(told, null, 1)}`)
    }
    return [keys.get(runId) ?? 0, place]
  })
  return new Map(died)
}

/** One tick that is killed at a place. */
export async function killTickAt(rig: ProgramRig, place: string): Promise<void> {
  const { code } = await crashAt(rig, 'caduceus', place)
  expect({ place, code }).toEqual({ place, code: -1 })
}

/** Claims whose runs are alive. */
function heldClaims(rig: ProgramRig): readonly string[] {
  const { claims } = rig.layout.directories
  return readdirSync(claims).filter((name) => isLocked(join(claims, name)))
}

/** Waits until every runner has left or died. */
export async function nobodyAtWork(rig: ProgramRig): Promise<void> {
  await waitUntil('no runner is at work', () => heldClaims(rig).length === 0, 60_000)
}

/** Later than backoff, settle time and deadlines of publishing together. */
const LATER_MS = 900_000
const MAX_ROUNDS = 8

/**
 * Ticks, each later than any wait, until every issue has reached the phase and nothing is claimed any more. Gives up
 * after a few: what is not as it should be then is told by the checks.
 */
export async function tickUntilQuiet(
  rig: ProgramRig,
  numbers: readonly number[],
  phase: string,
): Promise<void> {
  const isQuiet = (): boolean =>
    numbers.every((number) => rig.entry(number)?.phase === phase) &&
    readdirSync(rig.layout.directories.claims).length === 0
  await nobodyAtWork(rig)
  for (let round = 0; round < MAX_ROUNDS && !isQuiet(); round += 1) {
    rig.clock.advance(LATER_MS)
    // Not `--wait`: that stays through the settle time of a write whose effect is unknown.
    expect(await rig.run('run', '--now')).toEqual(QUIET)
    await nobodyAtWork(rig)
  }
}

/** One comment, one label change and one close; nothing in the repository. */
async function expectFindingsOnce(rig: ProgramRig, number: number): Promise<void> {
  expect(rig.entry(number)).toMatchObject({ phase: 'done', attempts: 0, runId: null })
  const { issue, ours, branches, pulls } = await traceOf(rig, number)
  expect(issue).toMatchObject({ state: 'closed', labels: [], closedBy: BOT })
  expect(issue?.comments.map(({ author }) => author)).toEqual([BOT])
  expect([ours, branches, pulls]).toEqual([['closed', 'unlabeled'], [], []])
}

/** One report, and an issue and a repository as they were. */
async function expectPreviewedOnce(rig: ProgramRig, number: number): Promise<void> {
  expect(rig.entry(number)).toMatchObject({ phase: 'previewed', attempts: 0, runId: null })
  const { issue, ours, branches, pulls } = await traceOf(rig, number)
  expect(issue).toMatchObject({ state: 'open', labels: [LABELS.code], comments: [] })
  expect([ours, branches, pulls]).toEqual([[], [], []])
  const runs = rig.journals().filter(({ key }) => key.number === number)
  const reports = runs.filter(({ runId }) => existsSync(rig.layout.run(runId).dryRunReport))
  expect(reports).toHaveLength(1)
}

/** What an issue and its repository show of us. */
async function traceOf(rig: ProgramRig, number: number) {
  const { repo } = rig
  const prefix = `automation/issue-${number}-`
  const issues = await rig.control('listIssues', { repo })
  const issue = issues.find((one) => one.number === number)
  const { branches } = await rig.control('readRepository', { repo })
  return {
    issue,
    ours: (issue?.events.filter(({ actor }) => actor === BOT) ?? []).map(({ kind }) => kind).sort(),
    branches: Object.keys(branches).filter((name) => name.startsWith(prefix)),
    pulls: issues.filter(({ pull }) => pull?.headBranch.startsWith(prefix)),
  }
}

/** Kinds of work: what asks for it, and what it must come to, once, whatever died. */
export const JOBS = {
  code: {
    label: LABELS.code,
    config: {},
    phase: 'awaiting_review',
    check: expectPublishedOnce,
    keepsTrees: false,
  },
  investigation: {
    label: LABELS.investigation,
    config: {},
    phase: 'done',
    check: expectFindingsOnce,
    keepsTrees: false,
  },
  'dry run': {
    label: LABELS.code,
    config: { dry_run: true },
    phase: 'previewed',
    check: expectPreviewedOnce,
    keepsTrees: true,
  },
} as const

export type JobName = keyof typeof JOBS

/**
 * What does not hold of each issue, told with where its process died.
 * @param died issues with their places
 */
export async function violationsOf(
  rig: ProgramRig,
  job: JobName,
  died: ReadonlyMap<number, string>,
): Promise<readonly string[]> {
  const found: string[] = []
  for (const [number, place] of died) {
    try {
      await JOBS[job].check(rig, number)
      expect({ workersStarted: startsOf(rig, number) }).toEqual({ workersStarted: 1 })
    } catch (thrown) {
      found.push(`killed at ${place}: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
    }
  }
  return found
}

/** No claim, no held lock, no file in the making, no lock of git, and no tree of a run that is over. */
export function expectNothingLeft(rig: ProgramRig, job: JobName): void {
  const files = readdirSync(rig.layout.stateDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  const locks = files.filter((path) => path.endsWith('.lock'))
  const ours = ['tick.lock', 'state.lock', 'sup.lock', 'tree.lock']
  const isOurs = (path: string): boolean =>
    ours.includes(basename(path)) || path.startsWith(`${rig.layout.directories.repos}/`)
  expect({
    claims: readdirSync(rig.layout.directories.claims),
    held: locks.filter((path) => isLocked(path)),
    foreign: locks.filter((path) => !isOurs(path) || /\.git\//.test(path)),
    unfinished: files.filter((path) => /\.tmp$|tmp_obj|tmp_pack/.test(path)),
    trees: JOBS[job].keepsTrees ? [] : treesOf(rig),
  }).toEqual({ claims: [], held: [], foreign: [], unfinished: [], trees: [] })
  if (!JOBS[job].keepsTrees) return
  // A dry run's tree is kept for people to look at: one for each.
  const runs = new Set(treesOf(rig).map((path) => basename(path)))
  const settled = rig.journals().filter(({ outcome }) => outcome?.on === 'previewed')
  expect(runs).toEqual(new Set(settled.map(({ runId }) => runId)))
}
