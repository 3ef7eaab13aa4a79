import { join } from 'node:path'
import { paint } from '../app/paint.ts'
import { layoutOf } from '../state/layout.ts'
import { listDirectory, readFileBounded } from '../sys/files.ts'
import type { DemoParts } from './demo-parts.ts'
import type { DemoReport } from './demo-report.ts'
import { DEMO } from './demo-story.ts'
import { gitOutput } from './git-output.ts'
import { showTests } from './show-tests.ts'

const REPORT_BYTES = 1024 * 1024

/** Prints what the run left on GitHub, and runs the project's tests on the published change. */
export async function showOutcome(
  demo: DemoParts,
  phase: string,
): Promise<Omit<DemoReport, 'keptIn'>> {
  const { scene, story, print } = demo
  const all = await scene.control('listIssues', { repo: DEMO.repository })
  const issue = all.find(({ number }) => number === scene.issue)
  const pull = all.find((each) => each.pull !== null)
  let testPasses: boolean | null = null
  if (pull?.pull) {
    print(paint.title(`Pull request #${pull.number}: ${pull.title}`))
    print(indent(pull.body ?? ''))
    print(paint.title('Its change'))
    const { baseBranch, headBranch } = pull.pull
    const { origin, root, environment } = scene
    const range = `${baseBranch}...${headBranch}`
    print(indent(await gitOutput(['--no-pager', 'diff', range], origin, environment)))
    const review = join(root, 'review')
    const clone = ['clone', '--quiet', '--branch', headBranch, origin, review]
    await gitOutput(clone, root, environment)
    testPasses = await showTests(demo, review)
  }
  if (story.dryRun) showReport(demo)
  print(paint.title(`Issue #${scene.issue} is ${issue?.state ?? 'gone'}, in phase ${phase}`))
  print(`  labels: ${issue?.labels.join(', ') || '(none)'}`)
  for (const { author, body } of issue?.comments ?? []) print(indent(`${author}: ${body}`))
  return {
    phase,
    pull: pull?.number ?? null,
    issueState: issue?.state ?? 'gone',
    comments: issue?.comments.length ?? 0,
    testPasses,
  }
}

function showReport({ scene, print }: DemoParts): void {
  const { runs } = layoutOf(scene.stateDir).directories
  const name = listDirectory(runs).find((file) => file.endsWith('.dry-run.md'))
  if (name === undefined) return
  print(paint.title(`The report ${name}`))
  print(indent(readFileBounded(join(runs, name), REPORT_BYTES)?.toString('utf8') ?? ''))
}

function indent(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
}
