import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach } from '@jest/globals'
import type { Executor, SupervisionEnd } from '../../daemon/core/executor.ts'
import type { CapturedRemote, Journal } from '../../daemon/core/journal.ts'
import type { CapturedTree, Claim, Git, GitHub } from '../../daemon/core/ports.ts'
import type { QueueEntry } from '../../daemon/core/queue-state.ts'
import type { ExitReport } from '../../daemon/core/supervision-files.ts'
import { advanceRun, type RunEnd } from '../../daemon/engine/advance-run.ts'
import type { RunPorts } from '../../daemon/engine/run-ports.ts'
import type { RunSettings } from '../../daemon/engine/tick-ports.ts'
import {
  fakePort,
  JOURNAL,
  makeWorld,
  POLICY,
  PUSH_MS,
  publicationOf,
  RUN,
  STEP_MS,
  US,
} from '../publish/publish-world.ts'
import {
  AT,
  CIRCUITS,
  entryOf,
  RETRY,
  running,
  type Scene,
  SELF,
  useScene,
} from './engine-scene.ts'

// One claimed run over the real store and claims, with the world of the publish tests as its GitHub and a
// worker that needs no process.

export const RESULT = {
  status: 'success',
  summary: 'Done.',
  commit_message: 'fix: x',
  pull_request_title: 'fix: x',
}
const CHANGE: CapturedTree = {
  treeOid: 't'.repeat(40),
  changes: [
    {
      path: 'a.txt',
      status: 'modified',
      oldMode: '100644',
      newMode: '100644',
      newOid: 'o',
      size: 1,
      linkTarget: null,
    },
  ],
  submodulesKept: [],
  linksOut: [],
}
export const UNCHANGED: CapturedTree = { ...CHANGE, changes: [] }

export const REMOTE: CapturedRemote = {
  clonePath: '/clone',
  settings: [{ key: ['remote.origin.url'], value: ['https://', 'github.com/acme/widgets'] }],
}

const SETTINGS: RunSettings = {
  triggers: { code: '🤖 auto-fix', investigation: '🤖 auto-look' },
  retry: RETRY,
  circuits: CIRCUITS,
  policy: POLICY,
  existingPull: 'skip',
  archivesTrees: false,
  pushTimeoutMs: PUSH_MS,
  stepMs: STEP_MS,
  worker: {
    command: ['/bin/sh'],
    instruction: '',
    timeoutMs: 1000,
    completionGraceMs: 0,
    stallMs: 0,
    transcriptMaxBytes: 1000,
    environmentAllowlist: [],
  },
  trust: { trustedAuthors: [], ignoredAuthors: [] },
}

export const exited = (change: Partial<ExitReport> = {}): SupervisionEnd => ({
  kind: 'ended',
  report: {
    endedAt: AT,
    reason: 'exited',
    detail: null,
    exitCode: 0,
    signal: null,
    transcriptBytes: 0,
    transcriptTruncated: false,
    descendantsKilled: 0,
    unkillable: [],
    ...change,
  },
})

export type RunScene = ReturnType<typeof makeRun>

/** A run of its own for each test of the file. */
export function useRun(): () => RunScene {
  const scene = useScene()
  let run: RunScene | null = null
  beforeEach(() => {
    run = makeRun(scene())
  })
  return () => {
    if (run === null) throw new TypeError('only inside a test')
    return run
  }
}

export function makeRun(scene: Scene) {
  const world = makeWorld()
  const treePath = join(scene.root, 'tree')
  const paths = scene.layout.run(RUN)
  /** What the worker leaves; null = no result. And how its supervision ends, one after the other. */
  const worker = { result: RESULT as object | null, ends: [] as SupervisionEnd[], launches: 0 }
  const executorCalls: string[] = []
  const executor: Partial<Executor> = {
    launch: async (request) => {
      if (worker.launches > 0) return { kind: 'already-launched' }
      worker.launches += 1
      if (worker.result !== null) writeFileSync(request.resultPath, JSON.stringify(worker.result))
      return { kind: 'launched' }
    },
    watch: async (_, watching) => {
      executorCalls.push('watch')
      watching?.onHeartbeat?.()
      if (worker.launches === 0) return { kind: 'vanished', launched: false, workerStarted: false }
      return worker.ends.shift() ?? exited()
    },
    reap: async () => {
      executorCalls.push('reap')
      return { kind: 'clear', killed: 0 }
    },
  }
  const git: Partial<Git> = {
    ...world.ports.git,
    inspectClone: async () => ({ path: '/clone', originUrl: 'o', shallowOrPartial: false }),
    fetchBase: async () => ({
      storePath: '/store',
      branch: 'develop',
      oid: 'b'.repeat(40),
      remote: REMOTE,
    }),
    createTree: async (base, { path, indexPath }) => {
      mkdirSync(path, { recursive: true })
      return { storePath: base.storePath, path, indexPath, baseOid: base.oid }
    },
    captureTree: async () => CHANGE,
    describeDifference: async () => 'a difference',
    removeTree: async ({ path }) => rmSync(path, { recursive: true, force: true }),
  }
  const github: Partial<GitHub> = {
    ...world.ports.github,
    viewer: async () => US,
    pullRequest: async (_, number) => world.pulls.find((one) => one.number === number) ?? null,
  }
  const leaving = new AbortController()
  const jitter = { value: 0 }
  const claimNow = (): Claim => {
    const claim = scene.claims.take(JOURNAL.key, RUN)
    if (claim === null) throw new RangeError('the claim is held')
    return claim
  }
  let claim: Claim | null = null
  const ports = (change: Partial<RunPorts> = {}): RunPorts => {
    claim ??= claimNow()
    return {
      clock: scene.ports.clock,
      log: scene.ports.log,
      store: scene.ports.store,
      journals: scene.ports.journals,
      claim,
      github: fakePort<GitHub>('github', github),
      git: fakePort<Git>('git', git),
      executor: fakePort<Executor>('executor', executor),
      layout: scene.layout,
      templates: { frame: '{{body}}', behaviour: { code: 'c', investigation: 'i' } },
      settings: SETTINGS,
      environment: { PATH: '/bin:/usr/bin' },
      secrets: () => [],
      self: SELF,
      random: () => jitter.value,
      signal: leaving.signal,
      ...change,
    }
  }
  const journalAt = (stage: Journal['stage'], change: Partial<Journal> = {}): Journal => ({
    ...JOURNAL,
    treePath,
    indexPath: paths.index,
    stage,
    publication: stage === 'publishing' ? publicationOf('code') : null,
    ...change,
  })
  return {
    scene,
    world,
    worker,
    executor,
    executorCalls,
    git,
    github,
    jitter,
    leaving,
    settings: SETTINGS,
    paths,
    treePath,
    ports,
    journalAt,
    stored: (): Journal | null => scene.ports.journals.read(RUN),
    entry: (): QueueEntry | undefined => scene.entry(JOURNAL.key.number),
    treeExists: (): boolean => existsSync(treePath),
    isHeld: (): boolean => scene.claims.isHeld(JOURNAL.key),
    /** Both clocks go on. */
    advance: (ms: number): void => {
      scene.advance(ms)
      world.advance(ms)
    },
    /** The process is gone: the kernel frees its lock. */
    die: (): void => {
      claim?.close()
      claim = null
    },
    /** The queue has the run, its tree and result lie there, and the journal is at this stage. */
    async at(stage: Journal['stage'], change: Partial<Journal> = {}): Promise<Journal> {
      await scene.put(entryOf(JOURNAL.key.number, running()))
      mkdirSync(treePath, { recursive: true })
      mkdirSync(paths.directory, { recursive: true })
      const result = JSON.stringify(worker.result)
      if (stage === 'launching') worker.launches = 1
      if (stage === 'launching') writeFileSync(join(treePath, 'worker-result.json'), result)
      if (stage === 'finished') writeFileSync(paths.result, result)
      const journal = journalAt(stage, change)
      scene.ports.journals.write(journal)
      return journal
    },
    /** Carries the stored run on, as a runner would. */
    async carry(change: Partial<RunPorts> = {}): Promise<RunEnd> {
      const journal = scene.ports.journals.read(RUN)
      if (journal === null) throw new RangeError('no journal')
      return advanceRun(ports(change), journal)
    },
  }
}
