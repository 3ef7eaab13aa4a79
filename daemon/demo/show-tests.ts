import { paint } from '../app/paint.ts'
import { runProcess } from '../sys/run-process.ts'
import type { DemoParts } from './demo-parts.ts'
import { DEMO_TIMEOUT_MS } from './demo-story.ts'

/** Runs the project's own tests in a folder and prints their summary; true = they pass. */
export async function showTests({ scene, print }: DemoParts, folder: string): Promise<boolean> {
  const result = await runProcess({
    argv: ['python3', '-B', '-m', 'unittest'],
    cwd: folder,
    env: scene.environment,
    timeoutMs: DEMO_TIMEOUT_MS,
  })
  const passes = result.code === 0
  const summary = result.stderr.toString('utf8').trim().split('\n').slice(-1).join('')
  print(`  the project's tests ${passes ? paint.good('pass') : paint.bad('fail')}: ${summary}`)
  return passes
}
