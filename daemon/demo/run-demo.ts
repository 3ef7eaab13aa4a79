import type { Build } from '../app/build.ts'
import { paint } from '../app/paint.ts'
import { fault, isFault } from '../core/fault.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { removePath } from '../sys/files.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import type { DemoOptions, DemoReport, Print } from './demo-report.ts'
import { DEMO, type DemoStory } from './demo-story.ts'
import { describeCounts, requireExactlyOnce } from './exactly-once.ts'
import { type Kill } from './kill-processes.ts'
import { crashUntilEnd, runProgram, runUntilEnd } from './run-until-end.ts'
import { type DemoStage, setDemoStage } from './scene.ts'
import { showOutcome } from './show-outcome.ts'
import { showTests } from './show-tests.ts'

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
