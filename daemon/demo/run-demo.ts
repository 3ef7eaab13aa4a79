import { join } from 'node:path'
import { type Build, bundleOf } from '../app/build.ts'
import { followRuns } from '../app/follow-runs.ts'
import { paint } from '../app/paint.ts'
import { fault, isFault } from '../core/fault.ts'
import { openJsonStore } from '../state/json-store.ts'
import { layoutOf } from '../state/layout.ts'
import { systemClock } from '../sys/clock.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { listDirectory, readFileBounded, removePath } from '../sys/files.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import { runProcess } from '../sys/run-process.ts'
import {
  type CrashReport,
  describeCounts,
  type Kill,
  requireExactlyOnce,
  runThroughCrashes,
} from './crashes.ts'
import {
  DEMO,
  DEMO_ENDS,
  DEMO_TIMEOUT_MS,
  type DemoStage,
  type DemoStory,
  runGit,
  setDemoStage,
} from './scene.ts'

export type DemoOptions = Readonly<{
  investigate: boolean
  dryRun: boolean
  fail: boolean
  /** What the random kills of the daemon's processes follow from; null = it is left alone. */
  crashSeed: number | null
  /** Folder to keep everything in, or null. */
  keep: string | null
}>

export type DemoReport = Readonly<{
  phase: string
  pull: number | null
  issueState: string
  comments: number
  /** Of the project's test on what was published; null when nothing was. */
  testPasses: boolean | null
  keptIn: string | null
}> &
  Partial<CrashReport>

type Print = (line: string) => void

/** A whole run takes seconds; this only bounds a demo that is stuck. */
const RUN_TIMEOUT_MS = 120_000
const PROBE_INTERVAL_MS = 100
/** How long a demo that is interrupted has for ending what it started. */
const CLEAN_UP_MS = 10_000

/**
 * The whole job, for real, on this machine alone (README). Tells each step as it happens.
 * Faults: demo/refused, demo/failed.
 */
export async function runDemo(
  build: Build,
  options: DemoOptions,
  tell: Print,
): Promise<DemoReport> {
  const story = storyOf(options)
  const environment = readEnvironment()
  tell(paint.title('A repository with a failing test, a labelled issue, and an embedded GitHub'))
  const stage = await setDemoStage(build, options.keep, story, environment)
  let keeps = options.keep !== null
  const leaving = leaveOnSignal(CLEAN_UP_MS)
  try {
    return await play(build, stage, story, options, tell, leaving.signal)
  } catch (thrown) {
    // The fault says where everything is kept.
    if (isFault(thrown) && thrown.code === 'demo/failed') keeps = true
    throw thrown
  } finally {
    if (leaving.signal.aborted) stage.endRuns()
    leaving.stop()
    stage.close()
    if (keeps) tell(`Everything is kept in ${stage.root}`)
    else await removePath(stage.root)
  }
}

function storyOf({ investigate, dryRun, fail, crashSeed }: DemoOptions): DemoStory {
  return {
    kind: investigate ? 'investigation' : 'code',
    mode: fail ? 'fail' : investigate ? 'investigate' : 'fix',
    dryRun,
    crash: crashSeed !== null,
  }
}

async function play(
  build: Build,
  stage: DemoStage,
  story: DemoStory,
  options: DemoOptions,
  tell: Print,
  signal: AbortSignal,
): Promise<DemoReport> {
  const { control, issue, clone } = stage
  const opened = await control('readIssue', { repo: DEMO.repository, number: issue })
  tell(`  ${DEMO.repository}#${issue}: ${opened.title}  [${opened.labels.join(', ')}]`)
  await showTests(stage, clone, tell)

  tell(paint.title('The program runs: caduceus run --now --wait'))
  const kills: Kill[] = []
  const phase =
    options.crashSeed === null
      ? await runUntilEnd(build, stage, tell, signal)
      : await crashUntilEnd(build, stage, options.crashSeed, kills, tell, signal)

  const outcome = await showOutcome(stage, story, phase, options, tell)
  tell(paint.title('Once more: caduceus run --now --wait'))
  const before = await control('listIssues', { repo: DEMO.repository })
  await runProgram(build, stage, () => undefined, signal)
  const after = await control('listIssues', { repo: DEMO.repository })
  if (JSON.stringify(after) !== JSON.stringify(before)) {
    throw fault('demo/failed', { reason: 'a second run changed something', path: stage.root })
  }
  const pulls = after.filter(({ pull }) => pull !== null).length
  tell(`  nothing changed: ${pulls} pull request(s), ${outcome.comments} comment(s)`)
  if (options.crashSeed === null) return outcome
  const counts = await requireExactlyOnce(stage, story, options.crashSeed)
  tell(paint.title(`After ${kills.length} kills GitHub has, exactly once`))
  tell(`  ${describeCounts(counts)}`)
  return { ...outcome, seed: options.crashSeed, kills, counts }
}

function follow(stage: DemoStage, tell: Print): () => void {
  return followRuns(stage.stateDir, (line, origin) => {
    tell(origin === 'daemon' ? `  ${paint.step('•')} ${line}` : `      ${paint.quiet('│')} ${line}`)
  })
}

/** The same with the daemon's processes being killed; `kills` receives each as it happens. */
async function crashUntilEnd(
  build: Build,
  stage: DemoStage,
  seed: number,
  kills: Kill[],
  tell: Print,
  signal: AbortSignal,
): Promise<string> {
  tell(`  its processes are killed at random moments; again in the same way with --seed ${seed}`)
  const onKill = (kill: Kill): void => {
    kills.push(kill)
    const who = `${kill.process} (pid ${kill.pid})`
    tell(`  ${paint.bad('✗')} killed the ${who} while it ${kill.during}`)
  }
  const until = systemClock.now() + RUN_TIMEOUT_MS
  return runThroughCrashes(build, stage, { seed, until, signal }, onKill, follow(stage, tell))
}

/** One tick after another, as cron would do it, until nothing more happens by itself. */
async function runUntilEnd(
  build: Build,
  stage: DemoStage,
  tell: Print,
  signal: AbortSignal,
): Promise<string> {
  const look = follow(stage, tell)
  const store = openJsonStore({ clock: systemClock }, stage.stateDir)
  const until = systemClock.now() + RUN_TIMEOUT_MS
  for (;;) {
    await runProgram(build, stage, look, signal)
    const [entry] = Object.values(store.readQueue().entries)
    const phase = entry?.phase ?? 'unknown'
    if (entry?.phase === 'queued') {
      tell(
        `  ${paint.step('•')} attempt ${entry.attempts} of ${DEMO.attempts} failed; the next one is due at ${entry.nextAttemptAt ?? 'once'}`,
      )
      await systemClock.sleep(
        Math.max(Date.parse(entry.nextAttemptAt ?? '') - systemClock.now(), 0),
        signal,
      )
    }
    if (DEMO_ENDS.includes(phase)) return phase
    if (systemClock.now() > until) {
      throw fault('demo/failed', { reason: `the issue is ${phase}`, path: stage.root })
    }
  }
}

/** The real program, as a process of its own. */
async function runProgram(
  build: Build,
  stage: DemoStage,
  look: () => void,
  signal: AbortSignal,
): Promise<void> {
  const finished = new AbortController()
  const looking = (async () => {
    while (!finished.signal.aborted) {
      look()
      await systemClock.sleep(PROBE_INTERVAL_MS, finished.signal)
    }
    look()
  })()
  const result = await runProcess({
    argv: [process.execPath, bundleOf(build, 'caduceus'), 'run', '--now', '--wait'],
    cwd: stage.root,
    env: stage.environment,
    timeoutMs: RUN_TIMEOUT_MS,
    signal,
  }).finally(() => finished.abort())
  await looking
  const printed = result.stderr.toString('utf8').trim()
  const isTold = result.code === 1 && printed.includes('needs attention')
  if (result.code !== 0 && !isTold)
    throw fault('demo/failed', { reason: printed, path: stage.root })
}

async function showOutcome(
  stage: DemoStage,
  story: DemoStory,
  phase: string,
  options: DemoOptions,
  tell: Print,
): Promise<DemoReport> {
  const all = await stage.control('listIssues', { repo: DEMO.repository })
  const issue = all.find(({ number }) => number === stage.issue)
  const pull = all.find((one) => one.pull !== null)
  let testPasses: boolean | null = null
  if (pull?.pull) {
    tell(paint.title(`Pull request #${pull.number}: ${pull.title}`))
    tell(indent(pull.body ?? ''))
    tell(paint.title('Its change'))
    const { baseBranch, headBranch } = pull.pull
    const range = `${baseBranch}...${headBranch}`
    tell(indent(await runGit(['--no-pager', 'diff', range], stage.origin, stage.environment)))
    const review = join(stage.root, 'review')
    await runGit(
      ['clone', '--quiet', '--branch', headBranch, stage.origin, review],
      stage.root,
      stage.environment,
    )
    testPasses = await showTests(stage, review, tell)
  }
  if (story.dryRun) showReport(stage, tell)
  tell(paint.title(`Issue #${stage.issue} is ${issue?.state ?? 'gone'}, in phase ${phase}`))
  tell(`  labels: ${issue?.labels.join(', ') || '(none)'}`)
  for (const { author, body } of issue?.comments ?? []) tell(indent(`${author}: ${body}`))
  return {
    phase,
    pull: pull?.number ?? null,
    issueState: issue?.state ?? 'gone',
    comments: issue?.comments.length ?? 0,
    testPasses,
    keptIn: options.keep === null ? null : stage.root,
  }
}

function showReport(stage: DemoStage, tell: Print): void {
  const { directories } = layoutOf(stage.stateDir)
  const name = listDirectory(directories.runs).find((file) => file.endsWith('.dry-run.md'))
  if (name === undefined) return
  tell(paint.title(`The report ${name}`))
  tell(indent(readFileBounded(join(directories.runs, name), 1024 * 1024)?.toString('utf8') ?? ''))
}

/** Runs the project's own tests; true = they pass. */
async function showTests(stage: DemoStage, folder: string, tell: Print): Promise<boolean> {
  const result = await runProcess({
    argv: ['python3', '-B', '-m', 'unittest'],
    cwd: folder,
    env: stage.environment,
    timeoutMs: DEMO_TIMEOUT_MS,
  })
  const passes = result.code === 0
  const summary = result.stderr.toString('utf8').trim().split('\n').slice(-1).join('')
  tell(`  the project's tests ${passes ? paint.good('pass') : paint.bad('fail')}: ${summary}`)
  return passes
}

function indent(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
}
