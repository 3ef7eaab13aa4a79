import { type Build, bundleOf } from '../app/build.ts'
import { fault } from '../core/fault.ts'
import type { Journal, RunStage } from '../core/journal.ts'
import type { QueueEntry } from '../core/queue-state.ts'
import { openJournals } from '../state/journals.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf } from '../state/layout.ts'
import { readStarted } from '../supervision/control-run.ts'
import { systemClock } from '../sys/clock.ts'
import { processesHolding } from '../sys/find-processes.ts'
import {
  childrenOf,
  identifyProcess,
  isAlive,
  type ProcessIdentity,
} from '../sys/process-identity.ts'
import { captureHead } from '../sys/run-process.ts'
import { type StartedProcess, signalGroup, startProcess } from '../sys/start-process.ts'
import { killIdentity, killSession } from '../sys/terminate.ts'
import {
  activityOf,
  isInReach,
  isMissed,
  locationOf,
  type PlannedKill,
  type ProcessName,
  planKills,
  VICTIMS,
} from './crash-plan.ts'
import { DEMO, DEMO_ENDS, type DemoStage, type DemoStory } from './scene.ts'

// `demo --crash`: the planned blows fall on the real processes while they do the demo's job.

export type Kill = Readonly<{
  process: ProcessName
  pid: number
  /** How far the run had come, as its journal says; null = there was no run yet. */
  stage: RunStage | null
  /** What the process did just then, for people. */
  during: string
}>

/** What a demo with crashes tells besides. */
export type CrashReport = Readonly<{ seed: number; kills: readonly Kill[]; counts: GitHubCounts }>

/** Everything that is on the embedded GitHub because of the daemon. */
type GitHubCounts = Readonly<{
  branches: number
  pullRequests: number
  comments: number
  labelChanges: number
  closes: number
}>

/** What each kind of ticket has to leave there, whatever was killed (design §1.7). */
const EXACTLY_ONCE = {
  code: { branches: 1, pullRequests: 1, comments: 1, labelChanges: 1, closes: 1 },
  investigation: { branches: 0, pullRequests: 0, comments: 1, labelChanges: 1, closes: 1 },
} as const satisfies Record<DemoStory['kind'], GitHubCounts>

/** Short enough to see every stage of a run that takes a second or two. */
const PROBE_INTERVAL_MS = 10
/** Between two ticks; cron takes longer, but nobody wants to watch that. */
const TICK_PAUSE_MS = 200
const TICK_OUTPUT_BYTES = 4096

/**
 * Carries the demo's issue to its end, one tick after another, while the planned blows fall; returns the
 * phase it ends in. Hits only ticks it started, and runners and supervisors on record in the demo's own
 * state directory, by their identity.
 * @param look called often, to tell what happens
 * @param until milliseconds since the epoch; after this the demo is stuck
 * Faults: demo/failed, sys/spawn-failed.
 */
export async function runThroughCrashes(
  build: Build,
  stage: DemoStage,
  plan: Readonly<{ seed: number; until: number; signal: AbortSignal }>,
  onKill: (kill: Kill) => void,
  look: () => void,
): Promise<string> {
  const ticks = openTicks(build, stage)
  const attacker = openAttacker(stage, planKills(plan.seed), ticks)
  try {
    for (;;) {
      const scene = attacker.look()
      const kills = attacker.strike(scene)
      look() // what the killed have still written comes first
      for (const kill of kills) onKill(kill)
      const phase = scene.entry?.phase ?? 'unknown'
      const isOver = DEMO_ENDS.includes(phase) && scene.journal?.stage === 'settled'
      if (isOver && ticks.current() === null) return phase
      if (plan.signal.aborted) throw fault('sys/process-aborted', { program: 'The demo' })
      if (systemClock.now() > plan.until) {
        const said = ticks.said() === '' ? '' : `; the last tick said: ${ticks.said()}`
        throw fault('demo/failed', { reason: `the issue is ${phase}${said}`, path: stage.root })
      }
      if (!isOver) await ticks.keepOne(dueAt(scene))
      await systemClock.sleep(PROBE_INTERVAL_MS)
    }
  } finally {
    ticks.end()
  }
}

type Ticks = Readonly<{
  /** The one that runs. */
  current: () => ProcessIdentity | null
  /** Starts the next one when the last has left and it is time, as cron would. */
  keepOne: (notBefore: number) => Promise<void>
  /** What the last one printed for its operator. */
  said: () => string
  end: () => void
}>

function openTicks(build: Build, stage: DemoStage): Ticks {
  const argv = [process.execPath, bundleOf(build, 'caduceus'), 'run', '--now', '--wait'] as const
  let running: StartedProcess | null = null
  let identity: ProcessIdentity | null = null
  let nextAt = 0
  let said = ''
  return {
    current: () => (running === null ? null : identity),
    keepOne: async (notBefore) => {
      if (running !== null || systemClock.now() < Math.max(nextAt, notBefore)) return
      const child = await startProcess({
        argv,
        cwd: stage.root,
        env: stage.environment,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const output = captureHead(child.stderr, TICK_OUTPUT_BYTES, () => undefined)
      running = child
      identity = identifyProcess(child.pid)
      child.once('close', () => {
        running = null
        nextAt = systemClock.now() + TICK_PAUSE_MS
        said = output.bytes().toString('utf8').trim()
      })
    },
    said: () => said,
    end: () => {
      if (running !== null) signalGroup(running, 'SIGKILL')
    },
  }
}

type Scene = Readonly<{ entry: QueueEntry | null; journal: Journal | null }>

/** Milliseconds since the epoch before which a tick would find nothing to do. */
function dueAt({ entry, journal }: Scene): number {
  const wait = entry?.phase === 'queued' ? entry.nextAttemptAt : (journal?.notBefore ?? null)
  return wait === null ? 0 : Date.parse(wait)
}

type Attacker = Readonly<{ look: () => Scene; strike: (scene: Scene) => readonly Kill[] }>

/** One blow after the other, each as soon as its place in the run is reached and its delay is over. */
function openAttacker(stage: DemoStage, plan: readonly PlannedKill[], ticks: Ticks): Attacker {
  const journals = openJournals(stage.stateDir)
  const store = openJsonStore({ clock: systemClock }, stage.stateDir)
  const find = finders(stage.stateDir, ticks)
  const left = [...plan]
  let lastLocation = ''
  let firesAt: number | null = null
  return {
    look: () => {
      const runId = journals.list().at(-1)
      const [entry = null] = Object.values(store.readQueue().entries)
      return { entry, journal: runId === undefined ? null : journals.read(runId) }
    },
    strike: ({ journal }) => {
      const [blow] = left
      if (blow === undefined) return []
      const { processes, takesChildren } = VICTIMS[blow.victim]
      const [first] = processes
      if (isMissed(journal, blow, systemClock.now())) {
        left.shift()
        firesAt = null
        return []
      }
      // Only a run that has come further is struck again: being taken over for ever is another story.
      const isNew = blow.after === null || locationOf(journal) !== lastLocation
      if (firesAt === null) {
        const isReady = isNew && isInReach(journal, blow) && find[first](journal) !== null
        if (isReady) firesAt = systemClock.now() + blow.delayMs
        return []
      }
      if (systemClock.now() < firesAt) return []
      firesAt = null
      if (!isInReach(journal, blow)) return []
      const hit = processes.flatMap((name) => {
        const target = find[name](journal)
        const kill = takesChildren && name === 'runner' ? killWithChildren : killOne
        return target !== null && kill(target) ? [{ process: name, pid: target.pid }] : []
      })
      // Read once more: the dead write nothing now, so this is where they were struck.
      const struck = journal === null ? null : journals.read(journal.runId)
      if (hit.length > 0) left.shift()
      if (hit.length > 0 && blow.after !== null) lastLocation = locationOf(struck)
      return hit.map((each) => ({
        ...each,
        stage: struck?.stage ?? null,
        during: activityOf(each.process, struck),
      }))
    },
  }
}

/** Where the processes of a run are found; null = there is none. */
function finders(
  stateDir: string,
  ticks: Ticks,
): Readonly<Record<ProcessName, (journal: Journal | null) => ProcessIdentity | null>> {
  const layout = layoutOf(stateDir)
  return {
    tick: ticks.current,
    runner: (journal) => {
      if (journal === null) return null
      if (journal.runner !== null && isAlive(journal.runner)) return journal.runner
      // One that has just taken over is known by the claim it holds; so is the tick that hands it over.
      const holders = processesHolding(layout.claim(journal.key))
      return holders.find(({ pid }) => pid !== ticks.current()?.pid) ?? null
    },
    supervisor: (journal) => {
      if (journal?.stage !== 'launching') return null
      const { runId, treePath } = journal
      const { directory } = layout.run(runId)
      const supervisor = readStarted({ runId, directory, treePath })?.supervisor
      return supervisor !== undefined && isAlive(supervisor) ? supervisor : null
    },
  }
}

function killOne(target: ProcessIdentity): boolean {
  return killIdentity(target, 'SIGKILL')
}

/** Programs a runner starts lead sessions of their own, so they would go on; here they end with it. */
function killWithChildren(runner: ProcessIdentity): boolean {
  const children = childrenOf(runner.pid).flatMap((pid) => identifyProcess(pid) ?? [])
  const isHit = killSession(runner) > 0
  for (const child of children) killSession(child)
  return isHit
}

/** Faults: demo/failed when GitHub does not hold exactly what one undisturbed run leaves there. */
export async function requireExactlyOnce(
  stage: DemoStage,
  { kind }: DemoStory,
  seed: number,
): Promise<GitHubCounts> {
  const counts = await countOnGitHub(stage)
  const [found, wanted] = [describeCounts(counts), describeCounts(EXACTLY_ONCE[kind])]
  if (found === wanted) return counts
  const reason = `GitHub has ${found} instead of ${wanted} (seed ${seed})`
  throw fault('demo/failed', { reason, path: stage.root })
}

/** `1 branch, 1 pull request, 1 comment, 1 label change, 1 close` */
export function describeCounts(counts: GitHubCounts): string {
  const one = (count: number, noun: string, plural = `${noun}s`): string =>
    `${count} ${count === 1 ? noun : plural}`
  return [
    one(counts.branches, 'branch', 'branches'),
    one(counts.pullRequests, 'pull request'),
    one(counts.comments, 'comment'),
    one(counts.labelChanges, 'label change'),
    one(counts.closes, 'close'),
  ].join(', ')
}

async function countOnGitHub({ control, issue: number }: DemoStage): Promise<GitHubCounts> {
  const { branches, defaultBranch } = await control('readRepository', { repo: DEMO.repository })
  const all = await control('listIssues', { repo: DEMO.repository })
  const events = all.find((each) => each.number === number)?.events ?? []
  const ours = events.filter(({ actor }) => actor === DEMO.bot).map(({ kind }) => kind)
  return {
    branches: Object.keys(branches).filter((name) => name !== defaultBranch).length,
    pullRequests: all.filter(({ pull }) => pull !== null).length,
    comments: all.flatMap(({ comments }) => comments).length,
    labelChanges: ours.filter((kind) => kind === 'labeled' || kind === 'unlabeled').length,
    closes: ours.filter((kind) => kind === 'closed' || kind === 'reopened').length,
  }
}
