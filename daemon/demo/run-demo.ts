import type { Build } from '../app/build.ts'
import { paint } from '../app/paint.ts'
import { fault, isFault } from '../core/fault.ts'
import { environment as readEnvironment } from '../sys/environment.ts'
import { removePath } from '../sys/files.ts'
import { leaveOnSignal } from '../sys/leaving.ts'
import type { DemoParts } from './demo-parts.ts'
import type { DemoOptions, DemoReport } from './demo-report.ts'
import { DEMO, type DemoStory } from './demo-story.ts'
import { describeCounts, requireExactlyOnce } from './exactly-once.ts'
import type { Kill } from './kill-processes.ts'
import { crashUntilEnd, runProgram, runUntilEnd } from './run-until-end.ts'
import { setDemoScene } from './scene.ts'
import { showOutcome } from './show-outcome.ts'
import { showTests } from './show-tests.ts'

/** How long an interrupted demo has for ending what it started. */
const CLEAN_UP_MS = 10_000

/**
 * `caduceus demo`: the whole job, with real processes, on this machine alone. Prints each step as it happens.
 * Faults: demo/refused, demo/failed; after the latter everything is kept for inspection.
 */
export async function runDemo(
  build: Build,
  options: DemoOptions,
  print: (line: string) => void,
): Promise<DemoReport> {
  const story = storyOf(options)
  print(paint.title('A repository with a failing test, a labelled issue, and an embedded GitHub'))
  const scene = await setDemoScene(build, options.keep, story, readEnvironment())
  let isRetained = options.keep !== null
  const leaving = leaveOnSignal(CLEAN_UP_MS)
  const demo: DemoParts = { build, story, scene, print, signal: leaving.signal }
  try {
    const report = await play(demo, options.crashSeed)
    return { ...report, keptIn: options.keep === null ? null : scene.root }
  } catch (thrown) {
    if (isFault(thrown) && thrown.code === 'demo/failed') isRetained = true
    throw thrown
  } finally {
    if (leaving.signal.aborted) scene.endRuns()
    leaving.stop()
    scene.close()
    if (isRetained) print(`Everything is kept in ${scene.root}`)
    else await removePath(scene.root)
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
  demo: DemoParts,
  crashSeed: number | null,
): Promise<Omit<DemoReport, 'keptIn'>> {
  const { scene, print } = demo
  const { control, issue, clone } = scene
  const opened = await control('readIssue', { repo: DEMO.repository, number: issue })
  print(`  ${DEMO.repository}#${issue}: ${opened.title}  [${opened.labels.join(', ')}]`)
  await showTests(demo, clone)

  print(paint.title('The program runs: caduceus run --now --wait'))
  const kills: Kill[] = []
  const phase =
    crashSeed === null
      ? await runUntilEnd(demo)
      : await crashUntilEnd(demo, crashSeed, (kill) => kills.push(kill))

  const outcome = await showOutcome(demo, phase)
  await requireNothingMore(demo, outcome.comments)
  if (crashSeed === null) return outcome
  const counts = await requireExactlyOnce(demo, crashSeed)
  print(paint.title(`After ${kills.length} kills GitHub has, exactly once`))
  print(`  ${describeCounts(counts)}`)
  return { ...outcome, seed: crashSeed, kills, counts }
}

/** One more tick must change nothing on GitHub. Faults: demo/failed. */
async function requireNothingMore(demo: DemoParts, comments: number): Promise<void> {
  const { scene, print } = demo
  print(paint.title('Once more: caduceus run --now --wait'))
  const before = await scene.control('listIssues', { repo: DEMO.repository })
  await runProgram(demo, () => undefined)
  const after = await scene.control('listIssues', { repo: DEMO.repository })
  if (JSON.stringify(after) !== JSON.stringify(before)) {
    throw fault('demo/failed', { reason: 'a second run changed something', path: scene.root })
  }
  const pulls = after.filter(({ pull }) => pull !== null).length
  print(`  nothing changed: ${pulls} pull request(s), ${comments} comment(s)`)
}
