import { paint } from '../app/paint.ts'
import { runProcess } from '../sys/run-process.ts'
import type { Print } from './demo-report.ts'
import { DEMO_TIMEOUT_MS } from './demo-story.ts'
import type { DemoStage } from './scene.ts'

/** Runs the project's own tests; true = they pass. */
export async function showTests(stage: DemoStage, folder: string, tell: Print): Promise<boolean> {
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
