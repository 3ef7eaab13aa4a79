import {
  cpSync,
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
import { setTimeout as pause } from 'node:timers/promises'
import { loadProgramConfig } from '../../daemon/app/load-program-config.ts'
import { runSettingsOf, tickSettingsOf } from '../../daemon/app/settings-of.ts'
import { evaluateCircuit } from '../../daemon/core/circuits.ts'
import { CONTROL_FILES } from '../../daemon/core/control-files.ts'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import type { Executor, LaunchRequest, SupervisionEnd } from '../../daemon/core/executor.ts'
import { evaluateGate } from '../../daemon/core/gate.ts'
import { issueId } from '../../daemon/core/issue-key.ts'
import type { Journal } from '../../daemon/core/journal.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { Claim, Claims, Clock, Git, Journals, Log, Store } from '../../daemon/core/ports.ts'
import { PHASES, type QueueEntry } from '../../daemon/core/queue-state.ts'
import { makeRunId } from '../../daemon/core/run-id.ts'
import { fromTimestamp, plausibleWait } from '../../daemon/core/timestamp.ts'
import { advanceRun, type RunEnd } from '../../daemon/engine/advance-run.ts'
import type { RunPorts } from '../../daemon/engine/run-ports.ts'
import { type TickReport, tick } from '../../daemon/engine/tick.ts'
import type { TickPorts, TickSettings } from '../../daemon/engine/tick-ports.ts'
import { openGit } from '../../daemon/git/open-git.ts'
import { openGitHub } from '../../daemon/github/open-github.ts'
import { openClaims } from '../../daemon/state/claims.ts'
import { openGarbage } from '../../daemon/state/garbage.ts'
import { openJournals } from '../../daemon/state/journals.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { layoutOf } from '../../daemon/state/layout.ts'
import { prepareDirectories } from '../../daemon/state/prepare-directories.ts'
import { startEmbeddedGitHub } from '../../embedded-github/server.ts'

// The real engine over real adapters in this process: GitHub over HTTP on loopback, git with real repositories,
// state in real files, and one clock for all that the test moves. Each tick and each carrying of a run opens
// GitHub and git anew, as the process that it stands for would; only the worker is the test's own.

const REPO = { owner: 'octo', name: 'app' } as const
const BOT = 'automation-bot'
const LABELS = { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' } as const
const START = Date.parse('2026-03-01T12:00:00.000Z')

/** `publish_settle_seconds`. */
export const RIG_SETTLE_MS = 120_000
/**
 * `retry_backoff_seconds`; shorter than what a publication waits for, so that nothing but the protocol holds a
 * write back.
 */
export const RIG_BACKOFF_MS = 30_000
const GIT_MS = 60_000

/** The settings of a configuration that says no more than it must, as the program would read it. */
function settingsIn(root: string, apiBase: string, keys: Readonly<Record<string, unknown>>) {
  const path = join(root, 'config.yaml')
  const config = {
    watched_repos: [`${REPO.owner}/${REPO.name}`],
    api_base: apiBase,
    workdir_base: join(root, 'projects'),
    state_dir: join(root, 'state'),
    worker_command: '/bin/sh',
    retry_backoff_seconds: RIG_BACKOFF_MS / 1000,
    publish_settle_seconds: RIG_SETTLE_MS / 1000,
    git_timeout_seconds: GIT_MS / 1000,
    ...keys,
  }
  writeFileSync(path, JSON.stringify(config))
  const { HOME = root } = environmentOf(root)
  const loaded = loadProgramConfig({ HOME, CADUCEUS_CONFIG: path }).config
  return { ofTick: tickSettingsOf(loaded), ofRun: runSettingsOf(loaded) }
}

const RESULT = {
  status: 'success',
  summary: 'Mended the application.',
  commit_message: 'fix(app): mend it',
  pull_request_title: 'fix(app): mend it',
}

/** Memory where there is some: thousands of small files that must be "durable" cost nothing there. */
const TEMPORARY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** What rigs begin with: GitHub with one repository, its clone, the daemon's store and state. */
export type RigTemplate = Readonly<{
  root: string
  token: string
  now: number
  /** Runs whose worker has been started. */
  launched: readonly string[]
  /** A commit that the origin has and no branch of it, for `lightGit`. */
  commit: string
  remove: () => void
}>

/** With no issue yet and no state. */
export async function makeRigTemplate(): Promise<RigTemplate> {
  const root = mkdtempSync(join(TEMPORARY, 'rig-template-'))
  const clock = { now: () => START }
  const github = await startEmbeddedGitHub({ root: join(root, 'github'), clock })
  try {
    const { token } = await github.control('createToken', { login: BOT })
    const repo = `${REPO.owner}/${REPO.name}`
    const files = { 'app.txt': 'broken\n', 'README.md': '# App\n' }
    const { gitPath } = await github.control('createRepository', { repo, files })
    const change = { repo, branch: 'prepared', files: { 'app.txt': 'mended\n' } }
    const { oid } = await github.control('pushCommit', change)
    rmSync(refFile(gitPath, 'prepared'))
    for (const name of Object.values(LABELS)) await github.control('createLabel', { repo, name })
    const git = openGit(
      { clock: { ...clock, sleep }, environment: environmentOf(root) },
      gitOptions(root),
    )
    makeClone(root, gitPath)
    await git.fetchBase(REPO, await git.inspectClone(REPO), 'main')
    return templateOf(root, { token, now: START, launched: [], commit: oid })
  } finally {
    await github.close()
  }
}

const templateOf = (root: string, facts: Omit<RigTemplate, 'root' | 'remove'>): RigTemplate => ({
  ...facts,
  root,
  remove: () => rmSync(root, { recursive: true, force: true }),
})

/** As much of a clone as the daemon looks at; its objects stay with the origin. */
function makeClone(root: string, gitPath: string): void {
  const folder = join(root, 'projects', REPO.owner, REPO.name, '.git')
  mkdirSync(dirname(folder), { recursive: true })
  cpSync(gitPath, folder, { recursive: true })
  const origin = `[remote "origin"]\n\turl = ${gitPath}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n`
  writeFileSync(join(folder, 'config'), `[core]\n\trepositoryformatversion = 0\n${origin}`)
}

/** What was copied names places in the folder that it was copied from. */
function moveIn(from: string, to: string, journals: Journals): void {
  const config = join(to, 'projects', REPO.owner, REPO.name, '.git', 'config')
  writeFileSync(config, readFileSync(config, 'utf8').replaceAll(from, to))
  for (const runId of journals.list()) {
    const text = JSON.stringify(journals.read(runId)).replaceAll(from, to)
    // Only paths have changed.
    journals.write(JSON.parse(text) as Journal)
  }
}

const sleep: Clock['sleep'] = async (ms) => {
  await pause(ms)
}

const environmentOf = (root: string): Record<string, string> => ({
  PATH: `${join(root, 'bin')}:${process.env['PATH'] ?? ''}`,
  HOME: join(root, 'home'),
})

const gitOptions = (root: string, timeoutMs = GIT_MS) => ({
  workdirBase: join(root, 'projects'),
  storageRoot: join(root, 'repos'),
  apiBase: 'http://127.0.0.1:9',
  timeoutMs,
  controlFiles: Object.values(CONTROL_FILES),
})

/** A limit of GitHub that was stored at `from`, when number `after` was the newest request. */
type StoredLimit = Readonly<{ after: number; from: number; until: number }>

export type RigOptions = Readonly<{
  /** Keys of the configuration. */
  config?: Readonly<Record<string, unknown>>
  /** Deadlines of a request and of a call of git, in real milliseconds. */
  httpTimeoutMs?: number
  gitTimeoutMs?: number
  /** Numbers in [0, 1) for backoffs and spreads, one after the other and again; default: 0. */
  random?: readonly number[]
  /** false = the daemon has no store of the repository yet. */
  store?: boolean
  /** For runs that are not about git: what it would do is written into the origin, without a process. */
  lightGit?: boolean
  /** Called when a worker starts, and while a tick could look at the run at work. */
  onWorker?: (run: Journal, rig: InProcessRig) => Promise<void>
}>

export type InProcessRig = Awaited<ReturnType<typeof openInProcessRig>>

/** Rounds after which a rig that does not come to rest fails its test. */
const MAX_ROUNDS = 80

export async function openInProcessRig(template: RigTemplate, options: RigOptions = {}) {
  const root = mkdtempSync(join(TEMPORARY, 'rig-'))
  cpSync(template.root, root, { recursive: true })
  if (options.store === false) rmSync(join(root, 'repos'), { recursive: true })

  const origin = join(root, 'github', 'git', REPO.owner, `${REPO.name}.git`)
  let now = template.now
  const clock: Clock = { now: () => now, sleep }
  const hub = await startEmbeddedGitHub({ root: join(root, 'github'), clock })
  const { control } = hub
  const layout = layoutOf(join(root, 'state'))
  prepareDirectories(layout.stateDir)
  const store = openJsonStore({ clock }, layout.stateDir)
  const journals = openJournals(layout.stateDir)
  moveIn(template.root, root, journals)
  const settings = settingsIn(root, hub.url, options.config ?? {})

  const logged: { event: string; fields: Readonly<Record<string, unknown>> }[] = []
  const note: Log['info'] = (event, fields = {}) => void logged.push({ event, fields })
  const log: Log = { info: note, warn: note, error: note }
  const limits: StoredLimit[] = []
  let drawn = 0
  const random = (): number => options.random?.[drawn++ % options.random.length] ?? 0

  /** GitHub as a process of its own opens it: nothing shared but what is stored. */
  const openOwnGitHub = (): Pick<TickPorts, 'github' | 'lastAnswer'> => {
    let last: ReturnType<TickPorts['lastAnswer']> = { status: null, rate: null }
    const github = openGitHub(
      {
        clock,
        random,
        onAnswer: ({ status, rate }) => {
          last = { status, rate: rate ?? last.rate }
        },
        gate: () => store.readMeta().wait,
        onWait: async (wait) => {
          await store.changeMeta((meta) => {
            const known = plausibleWait(meta.wait?.until ?? null, now, LIMITS.rateLimitCapMs) ?? 0
            const isLonger = fromTimestamp(wait.until) > known
            return { state: isLonger ? { ...meta, wait } : meta, value: undefined }
          })
          const { entries } = await control('readRequests', {})
          limits.push({
            after: entries.at(-1)?.sequence ?? 0,
            from: now,
            until: fromTimestamp(wait.until),
          })
        },
      },
      {
        apiBase: hub.url,
        version: '1.2.3',
        maxPages: 5,
        cacheDirectory: join(layout.directories.cache, 'http'),
        token: async () => template.token,
        timeoutMs: options.httpTimeoutMs ?? 20_000,
      },
    )
    return { github, lastAnswer: () => last }
  }
  const crossed: { call: string; at: number }[] = []
  const observe = ({ method, when }: Effect): void => {
    if (when === 'before') crossed.push({ call: method, at: now })
  }
  const openOwnGit = (): Git => {
    const deps = { clock, environment: environmentOf(root) }
    const git = openGit(deps, gitOptions(root, options.gitTimeoutMs))
    const light = options.lightGit === true ? lightGit(origin, template.commit) : {}
    return countEffects('git', { ...git, ...light }, observe)
  }

  // A claim that is handed over stays locked when the tick closes its copy, until its run leaves.
  const handed = new Map<string, Claim>()
  const opened = openClaims({ clock }, layout.stateDir)
  const claims: Claims = {
    ...opened,
    take: (key, runId) => {
      const claim = opened.take(key, runId)
      const close = (): void => (handed.has(runId) ? undefined : claim?.close())
      return claim === null ? null : { ...claim, close }
    },
  }

  const worker = workerOf(template.launched, async (runId) => {
    const journal = journals.read(runId)
    if (journal !== null) await options.onWorker?.(journal, rig)
  })
  const leaving = new AbortController()
  let runs = template.launched.length
  const tickOnce = async (forced = false): Promise<TickReport> =>
    tick(
      {
        ...openOwnGitHub(),
        git: openOwnGit(),
        clock,
        log,
        store,
        journals,
        claims,
        layout,
        garbage: openGarbage(layout.stateDir),
        settings: settings.ofTick,
        prepareStart: async () => {},
        startRunner: async (claim, runId) => {
          handed.set(runId, claim)
        },
        endOrphans: () => {},
        endOwner: async () => false,
        cancelWorker: (runId) => void worker.cancelled.add(runId),
        newRunId: () => makeRunId(now, new Uint8Array(10).fill(++runs)),
        build: '/build',
        deadlineAt: now + LIMITS.tickMs,
        signal: new AbortController().signal,
      },
      forced,
    )

  const carry = async (runId: string, claim: Claim): Promise<RunEnd> => {
    const journal = journals.read(runId)
    if (journal === null) throw new RangeError(`no journal of ${runId}`)
    const ports: RunPorts = {
      github: openOwnGitHub().github,
      git: openOwnGit(),
      executor: worker.executor,
      clock,
      log,
      store,
      journals,
      claim,
      layout,
      templates: { frame: '{{body}}', behaviour: { code: 'c', investigation: 'i' } },
      settings: settings.ofRun,
      environment: environmentOf(root),
      secrets: () => [template.token],
      self: { pid: process.pid, startTicks: 1, bootId: 'boot', session: process.pid },
      random,
      signal: leaving.signal,
    }
    try {
      return await advanceRun(ports, journal)
    } finally {
      // The process is gone, and the kernel frees what it held.
      handed.delete(runId)
      claim.close()
    }
  }

  const rig = {
    root,
    layout,
    store,
    journals,
    claims,
    worker,
    limits,
    logged,
    /** Calls of the git port, in their order, with the test's time. */
    crossed,
    control,
    repo: `${REPO.owner}/${REPO.name}`,
    /** The account of the token. */
    bot: BOT,
    /** The bare repository of the embedded GitHub. */
    origin,
    now: () => now,
    advance: (ms: number): void => {
      now += ms
    },
    tick: tickOnce,
    /** Carries every run that was started or taken over as far as it goes now, all at once. */
    runAll: async (): Promise<readonly RunEnd[]> =>
      Promise.all([...handed].map(async ([runId, claim]) => carry(runId, claim))),
    /** One tick, and what it started or took over. */
    step: async (): Promise<TickReport> => {
      const report = await tickOnce()
      await rig.runAll()
      return report
    },
    openIssue: async (): Promise<number> => {
      const { repo } = rig
      const issue = { repo, author: 'alice', title: 'It is broken', body: 'It says "broken".' }
      return (await control('createIssue', { ...issue, labels: [LABELS.code] })).number
    },
    entry: (number: number): QueueEntry | undefined =>
      store.readQueue().entries[issueId({ ...REPO, number })],
    entries: (): readonly QueueEntry[] => Object.values(store.readQueue().entries),
    /** Ticks, carries runs on, and moves the clock to the next moment at which anything is due, until `isOver`. */
    tickUntil: async (isOver: () => boolean): Promise<readonly TickReport[]> => {
      const reports: TickReport[] = []
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        reports.push(await rig.step())
        if (isOver()) return reports
        now = nextMoment(now, store, journals, settings.ofTick)
      }
      throw new Error(`no rest after ${MAX_ROUNDS} rounds: ${JSON.stringify(rig.entries())}`)
    },
    /** Whether nothing is left to do for the issue by itself. */
    isAtRest: (number: number): boolean => {
      const phase = rig.entry(number)?.phase
      return phase !== undefined && (PHASES[phase].terminal || phase === 'awaiting_review')
    },
    tickUntilQuiet: async (number: number): Promise<readonly TickReport[]> =>
      rig.tickUntil(() => rig.isAtRest(number)),
    /** What has become of an issue and is on GitHub of it. */
    outcome: async (number: number) => {
      const entry = rig.entry(number)
      const issues = await control('listIssues', { repo: rig.repo })
      const issue = issues.find((one) => one.number === number)
      const ours = (kind: string): number =>
        issue?.events.filter((event) => event.kind === kind && event.actor === BOT).length ?? 0
      const isOf = (branch = ''): boolean => branch.includes(`issue-${number}-`)
      const branches = join(origin, 'refs', 'heads', 'automation')
      return {
        phase: entry?.phase ?? 'unknown',
        code: entry?.lastError?.code ?? null,
        attempts: entry?.attempts ?? -1,
        workers: worker.launched.length,
        branch: existsSync(branches) ? readdirSync(branches).filter(isOf).length : 0,
        pull: issues.filter(({ pull }) => isOf(pull?.headBranch)).length,
        comment: issue?.comments.filter(({ author }) => author === BOT).length ?? 0,
        label: ours('unlabeled'),
        close: ours('closed'),
        reopened: ours('reopened'),
        claims: claims.list().length,
      }
    },
    /** Requests that arrived while a limit was stored, but for those that were sent together with the limited one. */
    requestsDuringLimits: async (together = 1): Promise<number> => {
      const { entries } = await control('readRequests', {})
      const counts = limits.map(({ after, from, until }) => {
        const many = entries.filter(({ sequence, at }) => sequence > after && at < until)
        const atOnce = many.filter(({ at }) => at === from).length
        return many.length - Math.min(atOnce, together - 1)
      })
      return counts.reduce((sum, count) => sum + count, 0)
    },
    /** Hours later everybody looks once more; what they change then, which must be nothing. */
    laterWrites: async (): Promise<number> => {
      await control('clearRequests')
      now += 7_200_000
      await tickOnce(true)
      await rig.runAll()
      const { entries } = await control('readRequests', {})
      return entries.filter(({ method }) => method !== 'GET').length
    },
    /** Every run leaves after the step in hand, as one whose process is asked to. */
    askToLeave: (): void => leaving.abort(),
    /** Everything as it is now, for other rigs to begin with; nothing may be at work. */
    snapshot: (): RigTemplate => {
      const copy = mkdtempSync(join(TEMPORARY, 'rig-template-'))
      cpSync(root, copy, { recursive: true })
      const moved = templateOf(copy, { ...template, now, launched: worker.launched })
      moveIn(root, copy, openJournals(join(copy, 'state')))
      return moved
    },
    close: async (): Promise<void> => {
      for (const claim of handed.values()) claim.close()
      await hub.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
  return rig
}

const refFile = (origin: string, branch: string): string => join(origin, 'refs', 'heads', branch)

/** As much of git as a run needs to get a branch of its own with a commit that was made beforehand. */
function lightGit(origin: string, commit: string): Partial<Git> {
  const read = (branch: string): string | null => {
    const path = refFile(origin, branch)
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : null
  }
  const change = { path: 'app.txt', status: 'modified', newOid: commit, size: 7 } as const
  const base = { storePath: origin, branch: 'main', remote: { clonePath: origin, settings: [] } }
  const modes = { oldMode: '100644', newMode: '100644', linkTarget: null }
  return {
    fetchBase: async () => ({ ...base, oid: read('main') ?? '' }),
    createTree: async ({ storePath, oid }, { path, indexPath }) => {
      mkdirSync(path, { recursive: true })
      return { storePath, path, indexPath, baseOid: oid }
    },
    captureTree: async () => ({
      treeOid: commit,
      changes: [{ ...change, ...modes }],
      submodulesKept: [],
      linksOut: [],
    }),
    commitTree: async () => commit,
    remoteBranch: async (_, branch) => read(branch),
    pushNewBranch: async (_, oid, branch) => {
      mkdirSync(dirname(refFile(origin, branch)), { recursive: true })
      writeFileSync(refFile(origin, branch), `${oid}\n`)
    },
  }
}

/** A rig for as long as it is used. */
export async function withRig<T>(
  template: RigTemplate,
  options: RigOptions,
  use: (rig: InProcessRig) => Promise<T>,
): Promise<T> {
  const rig = await openInProcessRig(template, options)
  try {
    return await use(rig)
  } finally {
    await rig.close()
  }
}

/** What other rigs begin with after something more has happened. */
export const goOn = async (
  from: RigTemplate,
  options: RigOptions,
  happen: (rig: InProcessRig) => Promise<unknown>,
): Promise<RigTemplate> =>
  withRig(from, options, async (rig) => happen(rig).then(() => rig.snapshot()))

/** The earliest moment after now at which a tick has something to do: a poll is due, or a wait ends. */
function nextMoment(
  now: number,
  store: Store,
  journals: Journals,
  { pollIntervalMs, circuits: policy }: TickSettings,
): number {
  const { entries, circuits } = store.readQueue()
  const times = Object.values(entries).flatMap(({ nextAttemptAt, runId }) => [
    nextAttemptAt,
    runId === null ? null : (journals.read(runId)?.notBefore ?? null),
  ])
  const moments = [
    evaluateGate(store.readMeta(), now, pollIntervalMs, false).nextPollAt,
    ...times.map((time) => (time === null ? 0 : fromTimestamp(time))),
    ...Object.values(circuits).map((circuit) => evaluateCircuit(circuit, now, policy).until ?? 0),
  ]
  const later = moments.filter((moment) => moment > now)
  return later.length === 0 ? now + pollIntervalMs : Math.ceil(Math.min(...later))
}

/** A worker that needs no process: it edits one file and leaves a good result. */
function workerOf(before: readonly string[], onWatch: (runId: string) => Promise<void>) {
  const launched = [...before]
  const cancelled = new Set<string>()
  const executor: Executor = {
    launch: async ({ runId, treePath, resultPath }: LaunchRequest) => {
      if (launched.includes(runId)) return { kind: 'already-launched' }
      launched.push(runId)
      writeFileSync(join(treePath, 'app.txt'), `mended in ${runId}\n`)
      writeFileSync(resultPath, JSON.stringify(RESULT))
      return { kind: 'launched' }
    },
    watch: async ({ runId }) => {
      const isLaunched = launched.includes(runId)
      if (!isLaunched) return { kind: 'vanished', launched: false, workerStarted: false }
      await onWatch(runId)
      return ended(cancelled.has(runId) ? 'cancelled' : 'exited')
    },
    cancel: ({ runId }) => void cancelled.add(runId),
    killSupervisor: async () => false,
    reap: async () => ({ kind: 'clear', killed: 0 }),
  }
  return { executor, launched, cancelled }
}

const ended = (reason: 'exited' | 'cancelled'): SupervisionEnd => ({
  kind: 'ended',
  report: {
    endedAt: new Date(START).toISOString(),
    reason,
    detail: null,
    exitCode: 0,
    signal: null,
    transcriptBytes: 0,
    transcriptTruncated: false,
    descendantsKilled: 0,
    unkillable: [],
  },
})

/** Scenarios at a time; each has a GitHub, a clock and repositories of its own. */
const AT_ONCE = 4

export type Played<T> = Readonly<{ value: T }> | Readonly<{ thrown: unknown }>

/** Plays scenarios side by side; what one throws is kept for the test that looks at it. */
export async function playAll<Key extends string, T>(
  keys: readonly Key[],
  play: (key: Key) => Promise<T>,
): Promise<ReadonlyMap<Key, Played<T>>> {
  const results = new Map<Key, Played<T>>()
  const waiting = [...keys]
  const work = async (): Promise<void> => {
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      try {
        results.set(key, { value: await play(key) })
      } catch (thrown) {
        results.set(key, { thrown })
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return results
}
