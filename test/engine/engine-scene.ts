import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from '@jest/globals'
import { countEffects, type Effect } from '../../daemon/core/effects.ts'
import { type IssueKey, issueId } from '../../daemon/core/issue-key.ts'
import type { Journal, RecordedProcess } from '../../daemon/core/journal.ts'
import type {
  Claim,
  Claims,
  Clock,
  Git,
  GitHub,
  IssueSummary,
  Log,
  Poll,
} from '../../daemon/core/ports.ts'
import { newEntry, type QueueEntry, withEntry } from '../../daemon/core/queue-state.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import type { TickPorts, TickSettings } from '../../daemon/engine/tick-ports.ts'
import { openClaims } from '../../daemon/state/claims.ts'
import { openGarbage } from '../../daemon/state/garbage.ts'
import { openJournals } from '../../daemon/state/journals.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { layoutOf } from '../../daemon/state/layout.ts'
import { fakePort, JOURNAL, RUN, START } from '../publish/publish-world.ts'

// The engine over the real store, journals and claims in a folder of its own; GitHub, git, the clock and the
// runners are the test's. A runner "lives" while its claim stays locked.

export const KEY = JOURNAL.key
export const REPOSITORY = { owner: KEY.owner, name: KEY.name }
export const TRIGGERS = { code: 'auto-fix', investigation: 'auto-look' }
export const RETRY = { maxAttempts: 3, backoffSeconds: 60, maxDegradedSeconds: 3600 }
export const CIRCUITS = { threshold: 3, backoffSeconds: [30, 120], openSeconds: 1800 }
export const AT = toTimestamp(START)
export const SELF = { pid: 1, startTicks: 1, bootId: 'boot', session: 1 }

export const DAY = 86_400_000

export const SETTINGS: TickSettings = {
  repositories: [REPOSITORY],
  discover: false,
  triggers: TRIGGERS,
  capacity: { parallelism: 2, perRepository: 1 },
  maxClaims: 0,
  pollIntervalMs: 600_000,
  dryRun: false,
  retry: RETRY,
  circuits: CIRCUITS,
  longestStepMs: 3_600_000,
  retention: { runMs: 30 * DAY, treeMs: DAY, atticMs: 30 * DAY },
}

export const entryOf = (number: number, change: Partial<QueueEntry> = {}): QueueEntry => ({
  ...newEntry({ ...KEY, number }, 'code', AT, AT),
  ...change,
})
export const running = (runId = RUN): Partial<QueueEntry> => ({ phase: 'in_progress', runId })

export const issueOf = (number: number, change: Partial<IssueSummary> = {}): IssueSummary => ({
  number,
  title: `issue ${number}`,
  body: '',
  author: 'ada',
  labels: [TRIGGERS.code],
  isOpen: true,
  isPullRequest: false,
  mergedAt: null,
  updatedAt: START,
  commentCount: 0,
  ...change,
})
export const pollOf = (issues: readonly IssueSummary[], change: Partial<Poll> = {}): Poll => ({
  unchanged: false,
  issues,
  malformed: [],
  serverTime: START,
  ...change,
})

export type Scene = ReturnType<typeof makeScene>

/** A scene of its own for each test of the file; what is returned is the one of the running test. */
export function useScene(): () => Scene {
  let scene: Scene | null = null
  beforeEach(() => {
    scene = makeScene()
  })
  afterEach(() => scene?.remove())
  return () => {
    if (scene === null) throw new TypeError('only inside a test')
    return scene
  }
}

export function makeScene() {
  const root = mkdtempSync(join(tmpdir(), 'engine-'))
  const stateDir = join(root, 'state')
  let now = START
  let runs = 0
  const clock: Clock = { now: () => now, sleep: async () => {} }
  const logged: { event: string; fields: Readonly<Record<string, unknown>> }[] = []
  const note = (event: string, fields = {}): void => void logged.push({ event, fields })
  const log: Log = { info: note, warn: note, error: note }
  /** Crossings of a port in their order, and what is to be thrown at one of them. */
  const crossed: string[] = []
  const failures = new Map<string, () => unknown>()
  const observe = ({ port, method, when }: Effect): void => {
    const name = `${port}.${method}`
    if (when === 'before') crossed.push(name)
    const failure = failures.get(`${name} ${when}`)
    if (failure !== undefined) throw failure()
  }

  const store = countEffects('store', openJsonStore({ clock }, stateDir), observe)
  const journals = countEffects('journals', openJournals(stateDir), observe)
  const github: Partial<GitHub> = {
    pullRequest: async () => null,
    timeline: async () => ANSWER,
    serverTime: () => now,
  }
  const git: Partial<Git> = {
    tidyStore: async () => true,
    inspectClone: async () => ({ path: '/clone', originUrl: 'o', shallowOrPartial: false }),
  }
  const locks = openClaims({ clock }, stateDir)
  const taken = new Map<string, Claim>()
  const living = new Set<string>()
  const claims: Claims = {
    ...locks,
    take: (key, runId) => {
      const claim = locks.take(key, runId)
      if (claim === null) return null
      taken.set(runId, claim)
      return { ...claim, close: () => (living.has(runId) ? undefined : claim.close()) }
    },
  }
  const started: string[] = []
  const ended: number[] = []
  const cancelled: string[] = []
  const leaving = new AbortController()
  const runners = {
    prepareStart: async (): Promise<void> => {},
    startRunner: async (_: Claim, runId: string): Promise<void> => {
      started.push(runId)
      living.add(runId)
    },
    endOrphans: ({ pid }: Readonly<{ pid: number }>): void => void ended.push(pid),
    /** Killing the owner of a claim frees it. */
    endOwner: async (key: IssueKey, owner: RecordedProcess | null): Promise<boolean> => {
      if (owner !== null) ended.push(owner.pid)
      for (const [runId, claim] of taken) {
        if (issueId(claim.key) !== issueId(key)) continue
        living.delete(runId)
        claim.close()
      }
      return true
    },
    cancelWorker: (runId: string): void => void cancelled.push(runId),
  }
  const observed = countEffects('runners', runners, observe)
  const layout = layoutOf(stateDir)
  const ports: TickPorts = {
    clock,
    log,
    store,
    journals,
    claims: countEffects('claims', claims, observe),
    github: fakePort<GitHub>('github', github),
    git: fakePort<Git>('git', git),
    garbage: countEffects('garbage', openGarbage(stateDir), observe),
    layout,
    settings: SETTINGS,
    prepareStart: () => observed.prepareStart(),
    startRunner: (claim, runId) => observed.startRunner(claim, runId),
    endOrphans: (runner) => observed.endOrphans(runner),
    endOwner: async (key, owner) => observed.endOwner(key, owner),
    cancelWorker: (runId) => observed.cancelWorker(runId),
    newRunId: () => `01ARZ3NDEKTSV4RRFFQ69G5F${String(++runs).padStart(2, '0')}`,
    lastAnswer: () => ({ status: null, rate: null }),
    build: '/build',
    deadlineAt: START + 100_000,
    signal: leaving.signal,
  }
  return {
    root,
    layout,
    ports,
    with: (change: Partial<TickSettings>): TickPorts => ({
      ...ports,
      settings: { ...SETTINGS, ...change },
    }),
    github,
    git,
    claims,
    logged,
    crossed,
    /** Runs whose runner was started, and pids of runners that were ended. */
    started,
    ended,
    cancelled,
    leaving,
    fail: (crossing: string, thrown: () => unknown) => failures.set(crossing, thrown),
    mend: () => failures.clear(),
    advance: (ms: number) => {
      now += ms
    },
    now: () => now,
    async put(...entries: readonly QueueEntry[]): Promise<void> {
      await store.changeQueue((queue) => ({
        state: entries.reduce((all, entry) => withEntry(all, issueId(entry.key), entry), queue),
        value: null,
      }))
    },
    entry: (number: number): QueueEntry | undefined =>
      store.readQueue().entries[issueId({ ...KEY, number })],
    /** A journal of this run as its runner left it, and its claim file, held or free. */
    leave(journal: Partial<Journal>, isAlive: boolean): Journal {
      const left = { ...JOURNAL, ...journal }
      journals.write(left)
      const claim = claims.take(left.key, left.runId)
      if (isAlive) living.add(left.runId)
      else claim?.close()
      return left
    },
    /** The runner of a run dies: the kernel frees its lock, the file stays. */
    die(runId: string): void {
      living.delete(runId)
      taken.get(runId)?.close()
    },
    remove(): void {
      for (const claim of taken.values()) claim.close()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

const ANSWER = { value: [], serverTime: START }
