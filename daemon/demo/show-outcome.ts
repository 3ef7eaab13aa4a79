import { join } from 'node:path'
import { paint } from '../app/paint.ts'
import { layoutOf } from '../state/layout.ts'
import { listDirectory, readFileBounded } from '../sys/files.ts'
import type { DemoOptions, DemoReport, Print } from './demo-report.ts'
import { DEMO, type DemoStory } from './demo-story.ts'
import { indent } from './indent.ts'
import { runGit } from './run-git.ts'
import type { DemoStage } from './scene.ts'
import { showTests } from './show-tests.ts'

export async function showOutcome(
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
