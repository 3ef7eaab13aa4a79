import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { formatRunFile, parseRunFile, RUN_FILES } from '../../daemon/core/supervision-files.ts'
import { openJournals } from '../../daemon/state/journals.ts'
import {
  currentBootId,
  identifyProcess,
  isAlive,
  listProcesses,
  type ProcessIdentity,
} from '../../daemon/sys/process-identity.ts'
import { killIdentity } from '../../daemon/sys/terminate.ts'
import {
  crashPlace,
  effectsOfKind,
  expectNothingLeft,
  firstAndLast,
  GATED_WORKER,
  JOBS,
  type JobName,
  killRunnersAt,
  killTickAt,
  namesIn,
  nobodyAtWork,
  placesOf,
  QUICK_WORKER,
  type Recording,
  recordTick,
  startsOf,
  tickUntilQuiet,
  underPreload,
  violationsOf,
} from '../support/crash-runs.ts'
import { waitUntil } from '../support/processes.ts'
import { BOT, openProgramRig, type ProgramRig } from '../support/program-rig.ts'
import {
  closeGate,
  killNow,
  newestRun,
  openGate,
  processesOfRun,
  QUIET,
  type RunProcesses,
  writesOf,
} from '../support/program-views.ts'

// A process dies at each effect it has, really: SIGKILL. Others go on, and the world ends as if nobody had died.

/** Runs at a time; each dies at a place of its own. */
const AT_ONCE = 8

const open = async (job: JobName, bridge = QUICK_WORKER): Promise<ProgramRig> =>
  openProgramRig({
    bridge,
    config: { worker_parallelism: AT_ONCE, max_runs_per_repo: 0, ...JOBS[job].config },
  })

describe.each(['code', 'investigation', 'dry run'] as const)('a job: %s', (job) => {
  let rig: ProgramRig
  let undisturbed: Recording

  beforeAll(async () => {
    rig = await open(job)
    const number = await rig.openIssue({ labels: [JOBS[job].label] })
    undisturbed = await recordTick(rig)
    await JOBS[job].check(rig, number)
  })
  afterAll(async () => {
    await rig.close()
  })

  test('its runner dies before or after anything it does, and others end the work once', async () => {
    const all = placesOf(undisturbed.runner)
    const places = job === 'code' ? all : firstAndLast(all)
    const began = performance.now()
    const found: string[] = []
    for (let from = 0; from < places.length; from += AT_ONCE) {
      const died = await killRunnersAt(rig, places.slice(from, from + AT_ONCE), JOBS[job].label)
      await tickUntilQuiet(rig, [...died.keys()], JOBS[job].phase)
      found.push(...(await violationsOf(rig, job, died)))
    }
    report(`${job}: runners killed at ${places.length} of ${all.length} places`, began)
    expect(found).toEqual([])
    expectNothingLeft(rig, job)
    if (job === 'dry run') expect(await writesOf(rig)).toEqual([])
  }, 300_000)
})

/** Later than the hour after which a tick sweeps, so that each one does all that ticks do. */
const SWEEP_MS = 7_200_000
const OURS = 'git.pushNewBranch#1:after'

/** What leads to a tick that does something, and what comes of it. */
const TICKS = {
  'that starts a job': {
    prepare: async (rig: ProgramRig) => rig.openIssue(),
    /** All of it. */
    placesIn: placesOf,
    check: async (rig: ProgramRig, died: ReadonlyMap<number, string>) => {
      await tickUntilQuiet(rig, [...died.keys()], 'awaiting_review')
      return violationsOf(rig, 'code', died)
    },
  },
  'that takes a run over': {
    prepare: async (rig: ProgramRig) => {
      const died = await killRunnersAt(rig, [OURS], JOBS.code.label)
      return [...died.keys()][0] ?? 0
    },
    /** Until the run has a new runner; what comes then is the same as above. */
    placesIn: (recording: readonly string[]) =>
      placesOf(recording.slice(0, recording.lastIndexOf('journals.write after') + 1)),
    check: async (rig: ProgramRig, died: ReadonlyMap<number, string>) => {
      await tickUntilQuiet(rig, [...died.keys()], 'awaiting_review')
      return violationsOf(rig, 'code', died)
    },
  },
  'that sees a pull request closed unmerged': {
    prepare: async (rig: ProgramRig) => {
      const number = await rig.openIssue()
      await tickUntilQuiet(rig, [number], 'awaiting_review')
      const pull = rig.entry(number)?.pull?.number ?? 0
      await rig.control('closeIssue', { repo: rig.repo, number: pull, actor: 'alice' })
      return number
    },
    placesIn: (recording: readonly string[]) =>
      placesOf(recording).filter((place) => /reopenIssue|changeQueue/.test(place)),
    check: expectReopenedOnce,
  },
} as const

describe.each(Object.keys(TICKS) as (keyof typeof TICKS)[])('a tick %s', (name) => {
  const { prepare, placesIn, check } = TICKS[name]
  const rigs: ProgramRig[] = []
  let places: readonly string[] = []

  beforeAll(async () => {
    // Two at a time, each with a world of its own.
    for (const rig of await Promise.all([open('code'), open('code')])) rigs.push(rig)
    await Promise.all(
      rigs.map(async (rig) => {
        await rig.openIssue()
        expect(await rig.tick()).toEqual(QUIET)
      }),
    )
    const [rig] = rigs
    if (rig === undefined) return
    await prepare(rig)
    rig.clock.advance(SWEEP_MS)
    places = placesIn((await recordTick(rig)).tick)
  })
  afterAll(async () => {
    await Promise.all(rigs.map((rig) => rig.close()))
  })

  test('dies before or after anything it does, and the next ones make it good', async () => {
    expect(places.length).toBeGreaterThan(3)
    const began = performance.now()
    const left = [...places]
    const found: string[] = []
    const work = async (rig: ProgramRig): Promise<void> => {
      for (let place = left.shift(); place !== undefined; place = left.shift()) {
        const number = await prepare(rig)
        rig.clock.advance(SWEEP_MS)
        await killTickAt(rig, place)
        found.push(...(await check(rig, new Map([[number, place]]))))
      }
    }
    await Promise.all(rigs.map(work))
    report(`a tick ${name}: killed at ${places.length} places`, began)
    expect(found).toEqual([])
    for (const rig of rigs) expectNothingLeft(rig, 'code')
  }, 300_000)
})

/** A human has to look, and the issue that was closed for the pull request is open again. */
async function expectReopenedOnce(
  rig: ProgramRig,
  died: ReadonlyMap<number, string>,
): Promise<readonly string[]> {
  const [number = 0] = died.keys()
  rig.clock.advance(SWEEP_MS)
  await rig.run('run', '--now')
  const issues = await rig.control('listIssues', { repo: rig.repo })
  const issue = issues.find((one) => one.number === number)
  const ours = issue?.events.filter(({ actor }) => actor === BOT).map(({ kind }) => kind)
  const seen = [rig.entry(number)?.phase, issue?.state, ours?.sort().join()]
  const wanted = ['needs_attention', 'open', 'closed,cross-referenced,reopened,unlabeled']
  return seen.join() === wanted.join() ? [] : [`killed at ${died.get(number)}: ${seen.join()}`]
}

describe('the list of effects', () => {
  let rig: ProgramRig

  beforeAll(async () => {
    rig = await open('code')
    await rig.openIssue()
    expect(await rig.tick()).toEqual(QUIET)
  })
  afterAll(async () => {
    await rig.close()
  })

  test('is whole: whatever acts is met in a job, and nothing that acts is taken for a look', async () => {
    rig.clock.advance(SWEEP_MS)
    await rig.openIssue()
    const { tick, runner } = await recordTick(rig)
    expect(namesIn([...placesOf(tick), ...placesOf(runner)])).toEqual(effectsOfKind('acts'))
  })
})

/** A worker whose first attempt at each issue fails. */
const SECOND_TIME_WORKER = QUICK_WORKER.replace(
  'echo mended',
  '[ "$(grep -cx "$CADUCEUS_ISSUE_NUMBER" "$HOME/started")" -gt 1 ] || exit 1\necho mended',
)

/** A run whose worker is at work and has nobody left to look after it. */
const abandon = async (rig: ProgramRig, whom: 'supervisor' | 'nobody else'): Promise<number> => {
  const number = await rig.openIssue()
  expect(await rig.run('run', '--now')).toEqual(QUIET)
  await waitUntil('the worker is at work', () => startsOf(rig, number) === 1)
  const { runner, supervisor } = await processesOfRun(rig)
  await killNow(runner, ...(whom === 'supervisor' ? [supervisor] : []))
  if (whom === 'nobody else') process.kill(supervisor, 'SIGSTOP')
  return number
}

/** What acts only where something has gone wrong: how it comes to that, and what must be true in the end. */
const RARE = {
  'executor.reap': {
    bridge: GATED_WORKER,
    config: {},
    begin: async (rig: ProgramRig) => abandon(rig, 'supervisor'),
    starts: 2,
    attempts: 0,
    attic: 0,
  },
  'executor.killSupervisor': {
    bridge: GATED_WORKER,
    config: { worker_timeout_seconds: 30 },
    begin: async (rig: ProgramRig) => abandon(rig, 'nobody else'),
    starts: 2,
    attempts: 0,
    attic: 0,
  },
  'git.archiveTree': {
    bridge: SECOND_TIME_WORKER,
    config: { archive_on_retry: true },
    begin: async (rig: ProgramRig) => rig.openIssue(),
    starts: 2,
    attempts: 1,
    attic: 1,
  },
  'github.deleteComment': {
    bridge: QUICK_WORKER,
    config: {},
    begin: async (rig: ProgramRig) => {
      // Made, not answered, and shown only after it was made again.
      const route = 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments'
      const action = { kind: 'reset', effect: true } as const
      await rig.control('addFault', { route, occurrence: 1, action, lag: { lagMs: 600_000 } })
      const number = await rig.openIssue()
      // Nor does the issue count it: that would be a reason to wait.
      await rig.control('editIssue', { repo: rig.repo, number, overlay: { comments: 0 } })
      return number
    },
    starts: 1,
    attempts: 0,
    attic: 0,
  },
} as const

/** Longer than the settle time and a first backoff, shorter than what a late comment needs to be shown. */
const ROUND_MS = 400_000

describe('what acts only where something has gone wrong', () => {
  test('is each killed at below, is what a tick does for a pull request, or has no caller', () => {
    const others = ['github.reopenIssue', 'executor.cancel']
    expect([...Object.keys(RARE), ...others].sort()).toEqual(effectsOfKind('rare'))
  })

  const dieAt = async (name: keyof typeof RARE, when: 'before' | 'after'): Promise<object> => {
    const { bridge, config, begin, attempts } = RARE[name]
    const rig = await openProgramRig({ bridge, config })
    try {
      const number = await begin(rig)
      const log = join(rig.dir, 'effects')
      const env = { ...crashPlace('runner', `${name}#1:${when}`), TEST_EFFECT_LOG: log }
      const isReached = (): boolean => readFileSync(log, 'utf8').includes(`${name} ${when}\n`)
      await underPreload(rig, env, async () => {
        for (let round = 0; round < 6; round += 1) {
          rig.clock.advance(ROUND_MS)
          expect(await rig.run('run', '--now')).toEqual(QUIET)
          await nobodyAtWork(rig)
          if (isReached()) return
        }
        throw new Error(`${name} was never met`)
      })
      if (bridge === GATED_WORKER) {
        rig.clock.advance(ROUND_MS)
        expect(await rig.run('run', '--now')).toEqual(QUIET)
        await waitUntil('the interruption is noted', () => rig.entry(number)?.interruptions === 1)
        openGate(rig)
      }
      await tickUntilQuiet(rig, [number], 'awaiting_review')
      expectNothingLeft(rig, 'code')
      if (attempts === 0) await JOBS.code.check(rig, number)
      const attic = join(rig.layout.attic, 'octo', 'app')
      return {
        starts: startsOf(rig, number),
        attempts: rig.entry(number)?.attempts,
        attic: existsSync(attic) ? readdirSync(attic).length : 0,
      }
    } finally {
      await rig.close()
    }
  }

  test.each(Object.keys(RARE) as (keyof typeof RARE)[])('%s', async (name) => {
    const { starts, attempts, attic } = RARE[name]
    const wanted = { starts, attempts, attic }
    const found = await Promise.all([dieAt(name, 'before'), dieAt(name, 'after')])
    expect(found).toEqual([wanted, wanted])
  })
})

/** Where all processes of a run die at once, and how many workers it takes then. */
const POWER_LOSSES = [
  { at: 'while the worker works', place: null, starts: 2 },
  { at: 'when the result is safe', place: 'git.captureTree#1:before', starts: 1 },
  { at: 'in the middle of publishing', place: 'github.createPullRequest#1:after', starts: 1 },
] as const

type PowerLoss = (typeof POWER_LOSSES)[number]

describe('processes of a run die together', () => {
  let rig: ProgramRig

  beforeAll(async () => {
    rig = await open('code', GATED_WORKER)
  })
  afterAll(async () => {
    await rig.close()
  })

  /** A run whose worker is at work, or whose runner has been stopped at a place. */
  const begin = async (place: string | null): Promise<number> => {
    const number = await rig.openIssue()
    if (place === null) {
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      await waitUntil('the worker is at work', () => startsOf(rig, number) === 1)
      await processesOfRun(rig)
      return number
    }
    openGate(rig)
    const env = { ...crashPlace('runner', place), TEST_CRASH_SIGNAL: 'SIGSTOP' }
    await underPreload(rig, env, async () => expect(await rig.run('run', '--now')).toEqual(QUIET))
    await waitUntil('the runner is stopped', () => isStopped(newestRun(rig).runner?.pid))
    closeGate(rig)
    return number
  }

  /** Once the interruption is noted, which may need a tick, the gate is opened, and the rest is waited for. */
  const end = async (number: number, starts: number): Promise<void> => {
    if (starts > 1) {
      expect(await rig.run('run', '--now')).toEqual(QUIET)
      await waitUntil('the interruption is noted', () => rig.entry(number)?.interruptions === 1)
    }
    openGate(rig)
    await tickUntilQuiet(rig, [number], 'awaiting_review')
    closeGate(rig)
    await JOBS.code.check(rig, number)
    expect(startsOf(rig, number)).toBe(starts)
    expectNothingLeft(rig, 'code')
  }

  test.each<[string, (of: RunProcesses) => readonly number[]]>([
    ['the supervisor alone', ({ supervisor }) => [supervisor]],
    ['runner and supervisor', ({ runner, supervisor }) => [runner, supervisor]],
  ])('%s: the worker is ended, no attempt is used, the next run publishes', async (_, whom) => {
    const number = await begin(null)
    const processes = await processesOfRun(rig)
    await killNow(...whom(processes))
    await end(number, 2)
    expect(identifyProcess(processes.worker)).toBeNull()
  })

  test.each(POWER_LOSSES)('all of them, $at', async ({ place, starts }) => {
    const number = await begin(place)
    await killSessions(rig)
    await end(number, starts)
  })

  test.each(
    POWER_LOSSES.flatMap((loss) => [
      { ...loss, boot: 'another boot', isOurs: false },
      { ...loss, boot: 'this boot', isOurs: true },
    ]),
  )(
    'with the machine, $at; records of $boot',
    async ({ place, starts, isOurs }: PowerLoss & { isOurs: boolean }) => {
      const number = await begin(place)
      await killSessions(rig)
      const bystanders = [await startBystander(), await startBystander()] as const
      try {
        const [runner, worker] = bystanders.map(({ identity }) => ({
          ...identity,
          bootId: isOurs ? identity.bootId : 'fa0000c5-0000-4000-8000-00000000b007',
        }))
        if (runner === undefined || worker === undefined) return
        rewriteRecords(rig, runner, worker)
        await end(number, starts)
        // Had the records been of this boot, these would be the processes to end.
        const alive = bystanders.map(({ identity }) => isAlive(identity))
        expect(alive).toEqual([!isOurs, !(isOurs && place === null)])
      } finally {
        for (const { child } of bystanders) child.kill('SIGKILL')
      }
    },
  )
})

function isStopped(pid: number | undefined): boolean {
  if (pid === undefined) return false
  return / T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

/** SIGKILL for everything in the sessions of a run at once: its processes, and what they have started. */
async function killSessions(rig: ProgramRig): Promise<void> {
  const { runId, runner } = newestRun(rig)
  const started = startedOf(rig, runId)
  const ids = [runner, started?.supervisor, started?.worker].map((one) => one?.session ?? 0)
  const members = listProcesses()
    .filter(({ session, isZombie }) => ids.includes(session) && !isZombie)
    .map((entry) => ({ ...entry, bootId: currentBootId() }))
  // Something that the worker had started may have ended by itself meanwhile.
  for (const member of members) killIdentity(member, 'SIGKILL')
  await waitUntil('all are gone', () => !members.some(isAlive))
  await nobodyAtWork(rig)
}

const startedPath = (rig: ProgramRig, runId: string): string =>
  join(rig.layout.run(runId).directory, RUN_FILES.started)

function startedOf(rig: ProgramRig, runId: string) {
  return parseRunFile('started', readFileSync(startedPath(rig, runId), 'utf8'))
}

/** What the newest run has on record names these processes now, as after a boot that gave out its ids again. */
function rewriteRecords(rig: ProgramRig, runner: ProcessIdentity, worker: ProcessIdentity): void {
  const journal = newestRun(rig)
  const { bootId } = runner
  const intent = journal.intent === null ? null : { ...journal.intent, bootId }
  openJournals(rig.layout.stateDir).write({ ...journal, runner, intent })
  const started = startedOf(rig, journal.runId)
  if (started === null) throw new Error('there is no started.json')
  const text = formatRunFile('started', { ...started, supervisor: worker, worker })
  writeFileSync(startedPath(rig, journal.runId), text)
}

type Bystander = Readonly<{ child: ChildProcess; identity: ProcessIdentity }>

/** A process that has nothing to do with us, the leader of its own session. */
async function startBystander(): Promise<Bystander> {
  const child = spawn('sleep', ['300'], { detached: true, stdio: 'ignore', cwd: '/', env: {} })
  const identity = await waitUntil('the bystander leads its session', () => {
    const found = identifyProcess(child.pid ?? 0)
    return found !== null && found.session === found.pid && found
  })
  return { child, identity }
}

function report(what: string, began: number): void {
  process.stdout.write(`${what}, ${((performance.now() - began) / 1000).toFixed(1)} s\n`)
}
