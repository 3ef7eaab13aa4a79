import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Executor } from '../../daemon/core/executor.ts'
import { describeThrown } from '../../daemon/core/fault.ts'
import { type IssueKey, issueId, type RepositoryName } from '../../daemon/core/issue-key.ts'
import type { Journal, RecordedProcess } from '../../daemon/core/journal.ts'
import type {
  CapturedTree,
  Claim,
  Claims,
  Clock,
  Git,
  GitHub,
  Log,
} from '../../daemon/core/ports.ts'
import type { QueueState } from '../../daemon/core/queue-state.ts'
import { makeRunId } from '../../daemon/core/run-id.ts'
import { toTimestamp } from '../../daemon/core/timestamp.ts'
import { advanceRun } from '../../daemon/engine/advance-run.ts'
import { tick } from '../../daemon/engine/tick.ts'
import type { RunSettings, TickSettings } from '../../daemon/engine/tick-ports.ts'
import { openClaims } from '../../daemon/state/claims.ts'
import { openGarbage } from '../../daemon/state/garbage.ts'
import { openJournals } from '../../daemon/state/journals.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { layoutOf } from '../../daemon/state/layout.ts'
import { type Caller, type ListName, makeModelCalls } from './model-calls.ts'
import { type ModelTime, makeModelGitHub } from './model-github.ts'
import { type Crash, type ModelProcess, makeProcess, portOf } from './model-process.ts'
import { type Behaviour, makeModelWorkers, WORKER_MS } from './model-worker.ts'

// The whole engine in one process: real ticks and runs over the real store, journals and claims, with GitHub, git,
// workers and the clock as models. Each tick and each runner is a process that goes on only when it is told to,
// as far as it is told to, and that can die at any call of a port.

/** What an installation has configured, and how slow GitHub is. */
export type Setup = Readonly<{
  seed: number
  lagMs: Readonly<Record<ListName, number>>
  maxAttempts: number
  parallelism: number
  perRepository: number
  closeIssue: 'finalize' | 'merge' | 'never'
  removeLabel: boolean
  existingPull: 'skip' | 'ignore'
  archivesTrees: boolean
  workers: readonly Behaviour[]
}>

export const TRIGGERS = { code: 'auto-fix', investigation: 'auto-look' } as const
export const REPOSITORIES: readonly RepositoryName[] = [
  { owner: 'Acme', name: 'Widgets' },
  { owner: 'Acme', name: 'Gears' },
]
export const SETTLE_MS = 120_000
const START = Date.parse('2026-03-01T12:00:00.000Z')
const RETRY = { backoffSeconds: 60, maxDegradedSeconds: 3600 }
export const CIRCUITS = { threshold: 3, backoffSeconds: [30, 120], openSeconds: 1800 }
const DAY = 86_400_000
const RETENTION = { runMs: 3 * DAY, treeMs: DAY, atticMs: 2 * DAY }
const CHANGED = {
  path: 'a.txt',
  status: 'modified',
  oldMode: '100644',
  newMode: '100644',
  newOid: 'o',
  size: 1,
  linkTarget: null,
} as const

/** Told of each change of the kind it names, right after it, or of a write right before it is sent. */
type Watchers = {
  onWrite?: (process: ModelProcess, caller: Caller, name: string) => void
  onWorker?: (runId: string) => void
  onQueue?: (before: QueueState, after: QueueState) => void
  onJournal?: (journal: Journal) => void
}

export type ModelWorld = ReturnType<typeof makeModelWorld>

export function makeModelWorld(setup: Setup) {
  const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'history-'))
  const stateDir = join(root, 'state')
  const layout = layoutOf(stateDir)
  const time: ModelTime = { server: START, skew: 0, wasSetAhead: false }
  const now = (): number => time.server + time.skew
  const clock: Clock = { now, sleep: async () => {} }
  const random = randomFrom(setup.seed)
  const trail: string[] = []
  const violations: string[] = []
  const counts = { crashes: 0, ticks: 0 }
  const note = (line: string): void => void trail.push(line)
  const violate = (text: string): void => {
    violations.push(text)
    note(`!!! ${text}`)
  }
  const options = { dryRun: false, healthy: false }
  const unlinked = new Set<string>()

  const store = openJsonStore({ clock }, stateDir)
  const journals = openJournals(stateDir)
  const locks = openClaims({ clock }, stateDir)
  const github = makeModelGitHub({ repositories: REPOSITORIES, time, note })
  const calls = makeModelCalls({
    github,
    time,
    random,
    lagMs: setup.lagMs,
    triggers: TRIGGERS,
    wait: () => store.readMeta().wait,
    storeWait: async (wait) =>
      store.changeMeta((meta) => ({ state: { ...meta, wait }, value: undefined })),
    note,
  })

  const processes: ModelProcess[] = []
  const held: { claim: Claim; owner: ModelProcess }[] = []
  const watchers: Watchers = {}
  const lastWriter = { runId: null as string | null }
  const workers = makeModelWorkers({
    time,
    random,
    behaviourAt: (count) =>
      options.healthy ? 'change' : (setup.workers[count % setup.workers.length] ?? 'change'),
    onPaid: (runId) => watchers.onWorker?.(runId),
    note,
  })
  const settled = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
  }

  const spawn = (kind: 'tick' | 'runner', runId: string | null): ModelProcess => {
    const made = makeProcess(kind, processes.length + 1, runId, {
      onDeath: (process) => {
        if (process.state === 'dead') {
          counts.crashes += 1
          note(`  ${nameOf(process)} dies`)
        }
        for (const one of held) if (one.owner === process) one.claim.close()
      },
      onLate: () => calls.fail('late', 1, false),
    })
    processes.push(made)
    return made
  }
  const callerOf = (process: ModelProcess): Caller => {
    const caller: Caller = {
      runId: process.runId,
      lastAnswer: null,
      gated: 0,
      wanted: new Map(),
      onWrite: (name, detail) => {
        note(`    ${nameOf(process)} writes ${name} ${detail}`)
        watchers.onWrite?.(process, caller, name)
        if (process.runId !== null) lastWriter.runId = process.runId
      },
    }
    return caller
  }
  const logOf = (process: ModelProcess): Log => {
    const line = (event: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      if (process.state === 'dead') return
      note(`    ${nameOf(process)}: ${event} ${JSON.stringify(fields)}`)
      const { code, message } = fields
      const isOurs = code === 'internal/unexpected' && !/no time was left/.test(String(message))
      if (isOurs) violate(`${nameOf(process)} met ${String(message)}`)
    }
    return { info: line, warn: line, error: line }
  }
  const storeFor = (process: ModelProcess) => {
    const watched: typeof store = {
      ...store,
      changeQueue: async (change) => {
        let announce = (): void => {}
        const value = await store.changeQueue((queue) => {
          const changed = change(queue)
          announce = () => watchers.onQueue?.(queue, changed.state)
          return changed
        })
        announce()
        return value
      },
    }
    return portOf(process, 'store', watched, ['changeQueue', 'changeMeta'])
  }
  const journalsFor = (process: ModelProcess) => {
    const watched: typeof journals = {
      ...journals,
      write: (journal) => {
        watchers.onJournal?.(journal)
        journals.write(journal)
      },
    }
    return portOf(process, 'journals', watched, [])
  }
  const claimFor = (process: ModelProcess, claim: Claim): Claim => {
    const mine = (act: () => void) => (): void => {
      if (held.some((one) => one.claim === claim && one.owner === process)) act()
    }
    return { ...claim, close: mine(() => claim.close()), release: mine(() => claim.release()) }
  }
  const claimsFor = (process: ModelProcess): Claims => {
    const mine: Claims = {
      ...locks,
      take: (key, runId) => {
        const claim = locks.take(key, runId)
        if (claim === null) return null
        held.push({ claim, owner: process })
        return claimFor(process, claim)
      },
    }
    return portOf(process, 'claims', mine, [])
  }
  const githubFor = (process: ModelProcess, caller: Caller): GitHub => {
    const port = calls.portFor(caller)
    const waiting = Object.keys(port).filter((name) => name !== 'serverTime') as (keyof GitHub)[]
    return portOf(process, 'github', port, waiting)
  }
  const gitFor = (process: ModelProcess, caller: Caller): Git => {
    const port: Git = {
      ...calls.gitFor(caller),
      createTree: async (from, { path, indexPath }) => {
        mkdirSync(path, { recursive: true })
        return { storePath: from.storePath, path, indexPath, baseOid: from.oid }
      },
      captureTree: async (tree): Promise<CapturedTree> => {
        const runId = process.runId ?? ''
        const isChanged = workers.behaviourOf(runId) !== 'no-change'
        const treeOid = Buffer.from(runId.slice(-20)).toString('hex')
        if (!existsSync(tree.path)) violate(`the tree of ${runId} is gone before its publication`)
        return { treeOid, changes: isChanged ? [CHANGED] : [], submodulesKept: [], linksOut: [] }
      },
      describeDifference: async () => 'a difference',
      archiveTree: async ({ path }, archivePath) => {
        if (!existsSync(path)) return false
        mkdirSync(dirname(archivePath), { recursive: true })
        renameSync(path, archivePath)
        return true
      },
      tidyStore: async () => true,
      removeTree: async ({ path }) => rmSync(path, { recursive: true, force: true }),
    }
    return portOf(process, 'git', port, Object.keys(port) as (keyof Git)[])
  }

  const executorFor = (process: ModelProcess): Executor =>
    portOf(process, 'executor', workers.executorFor(process), [
      'launch',
      'watch',
      'killSupervisor',
      'reap',
    ])

  const runSettings: RunSettings = {
    triggers: TRIGGERS,
    retry: { ...RETRY, maxAttempts: setup.maxAttempts },
    circuits: CIRCUITS,
    policy: {
      forbiddenStrings: [],
      closeIssue: setup.closeIssue,
      removeLabel: setup.removeLabel,
      settleMs: SETTLE_MS,
      protectedPaths: [],
      maxChangedFiles: 5000,
      maxDiffBytes: 1_000_000,
      maxFileBytes: 1_000_000,
    },
    existingPull: setup.existingPull,
    archivesTrees: setup.archivesTrees,
    pushTimeoutMs: 120_000,
    stepMs: 600_000,
    worker: {
      command: ['/bin/sh'],
      instruction: '',
      timeoutMs: WORKER_MS,
      completionGraceMs: 0,
      stallMs: 0,
      transcriptMaxBytes: 1000,
      environmentAllowlist: [],
    },
    trust: { trustedAuthors: [], ignoredAuthors: [] },
  }
  const tickSettings = (): TickSettings => ({
    repositories: REPOSITORIES,
    discover: false,
    triggers: TRIGGERS,
    capacity: { parallelism: setup.parallelism, perRepository: setup.perRepository },
    maxClaims: 0,
    pollIntervalMs: 300_000,
    dryRun: options.dryRun,
    retry: runSettings.retry,
    circuits: CIRCUITS,
    longestStepMs: 7_200_000,
    retention: RETENTION,
  })

  /** Runs its code until it ends; what a crash leaves behind is dropped. */
  const live = (process: ModelProcess, code: () => Promise<unknown>): void => {
    process.state = 'alive'
    const ended = (thrown?: unknown): void => {
      if (process.state === 'dead') return
      if (thrown !== undefined) {
        const text = describeThrown(thrown)
        violate(`${nameOf(process)} threw ${text}\n${thrown instanceof Error ? thrown.stack : ''}`)
      }
      process.end()
    }
    code().then(() => ended(), ended)
  }
  const beginRun = (process: ModelProcess, claim: Claim, runId: string): void => {
    const caller = callerOf(process)
    live(process, async () => {
      const journal = journals.read(runId)
      if (journal === null) throw new RangeError('a runner without a journal')
      process.epoch = journal.epoch
      const end = await advanceRun(
        {
          clock,
          log: logOf(process),
          store: storeFor(process),
          journals: journalsFor(process),
          claim: portOf(process, 'claim', claim, []),
          github: githubFor(process, caller),
          git: gitFor(process, caller),
          executor: executorFor(process),
          layout,
          templates: { frame: '{{body}}', behaviour: { code: 'c', investigation: 'i' } },
          settings: runSettings,
          environment: { PATH: '/bin:/usr/bin' },
          secrets: () => [],
          self: process.identity,
          random,
          signal: process.leaving.signal,
        },
        journal,
      )
      note(`  ${nameOf(process)} ends: ${end.kind} at ${end.journal.stage}`)
    })
  }
  const handOver = (claim: Claim, runId: string): void => {
    const runner = spawn('runner', runId)
    const one = held.findLast(({ claim: { fd } }) => fd === claim.fd)
    if (one === undefined) throw new RangeError('a claim nobody took')
    one.owner = runner
    begins.set(runner, () => beginRun(runner, claimFor(runner, one.claim), runId))
  }
  const begins = new Map<ModelProcess, () => void>()
  const endHolder = (key: IssueKey): boolean => {
    for (const { claim, owner } of held) {
      if (issueId(claim.key) === issueId(key) && owner.isLiving()) owner.die()
    }
    return true
  }
  const endProcess = (pid: number): void => {
    const left = processes.find((one) => one.pid === pid)
    if (left?.isLiving()) left.die()
  }
  const beginTick = (process: ModelProcess, forced: boolean): void => {
    const caller = callerOf(process)
    const startedAt = now()
    live(process, async () => {
      const isLimited = isStoredLimitAt(store.readMeta().wait, startedAt)
      const report = await tick(
        {
          clock,
          log: logOf(process),
          store: storeFor(process),
          journals: journalsFor(process),
          claims: claimsFor(process),
          github: githubFor(process, caller),
          git: gitFor(process, caller),
          garbage: portOf(process, 'garbage', openGarbage(stateDir), []),
          layout,
          settings: tickSettings(),
          ...portOf(
            process,
            'runners',
            {
              prepareStart: async () => {},
              startRunner: async (claim: Claim, runId: string) => handOver(claim, runId),
              endOrphans: ({ pid }: RecordedProcess) => endProcess(pid),
              endOwner: async (key: IssueKey) => endHolder(key),
              cancelWorker: workers.cancel,
            },
            [],
          ),
          newRunId: () => makeRunId(now(), countBytes((runs += 1))),
          lastAnswer: () => ({ status: null, rate: null }),
          build: '/build',
          deadlineAt: startedAt + 90_000,
          signal: process.leaving.signal,
        },
        forced,
      )
      if (isLimited && caller.gated > 0) {
        violate('a tick asked GitHub although a limit was stored')
      }
      note(`  tick ends: ${report.outcome}`)
    })
  }
  let runs = 0
  const ticking = (): ModelProcess | undefined =>
    processes.find((one) => one.kind === 'tick' && one.isLiving())
  const tickTimes = new Map<ModelProcess, number>()

  const world = {
    root,
    setup,
    layout,
    store,
    journals,
    locks,
    github,
    calls,
    time,
    now,
    options,
    counts,
    trail,
    violations,
    violate,
    note,
    watchers,
    workers,
    processes,
    living: (): readonly ModelProcess[] => processes.filter((one) => one.isLiving()),
    /** Lets a process go on until it waits, ends or dies. */
    async go(process: ModelProcess, budget: number, crash: Crash | null): Promise<void> {
      if (!process.isLiving()) return
      const begin = begins.get(process)
      begins.delete(process)
      process.allow(budget, crash)
      begin?.()
      await settled()
    },
    /** A tick, unless another one is planning; one that has the lock for too long is killed first. */
    async tick(forced: boolean, budget: number, crash: Crash | null): Promise<void> {
      const other = ticking()
      if (other !== undefined) {
        if (now() <= (tickTimes.get(other) ?? 0) + 110_000) return
        other.die()
      }
      const process = spawn('tick', null)
      counts.ticks += 1
      tickTimes.set(process, now())
      note(`  ${nameOf(process)} at ${toTimestamp(now())}`)
      begins.set(process, () => beginTick(process, forced))
      await world.go(process, budget, crash)
    },
    /** Every process goes on as far as it can. */
    async goAll(crash: Crash | null = null): Promise<void> {
      for (const process of world.living()) await world.go(process, Infinity, crash)
    },
    /** The claim file of a living runner is taken away under it. */
    unlinkClaim: (process: ModelProcess): void => {
      const one = held.findLast(({ owner }) => owner === process)
      if (!one?.claim.isCurrent()) return
      if (process.runId !== null) unlinked.add(process.runId)
      rmSync(layout.claim(one.claim.key))
    },
    /** The runs it was done to. */
    unlinked,
    /** The issues of living processes whose claims are the ones on disk. */
    holders: (): readonly string[] =>
      held.flatMap(({ claim, owner }) =>
        owner.isLiving() && claim.isCurrent() ? [issueId(claim.key)] : [],
      ),
    endProcess,
    cancelWorker: workers.cancel,
    /** The issue a run last wrote for. */
    lastWritten: (): IssueKey | null =>
      lastWriter.runId === null ? null : (journals.read(lastWriter.runId)?.key ?? null),
    isPlanning: (): boolean => ticking() !== undefined,
    pass: (ms: number): void => {
      time.server += ms
      calls.arrive()
    },
    remove: (): void => {
      for (const process of world.living()) process.die()
      rmSync(root, { recursive: true, force: true })
    },
  }
  return world
}

function isStoredLimitAt(wait: Readonly<{ until: string }> | null, at: number): boolean {
  const left = wait === null ? 0 : Date.parse(wait.until) - at
  return left > 0 && left <= 3_660_000
}

export const short = (runId: string | null): string => (runId ?? '').slice(-4)
const nameOf = ({ kind, pid, runId }: ModelProcess): string =>
  kind === 'tick' ? `tick ${pid}` : `runner ${pid} of ${short(runId)}`

function countBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(10)
  bytes[9] = count % 256
  bytes[8] = Math.floor(count / 256)
  return bytes
}

/** mulberry32: small, and the same everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
