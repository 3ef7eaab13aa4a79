import { fault } from '../core/fault.ts'
import { runProcess } from '../sys/run-process.ts'
import { DEMO_TIMEOUT_MS } from './demo-story.ts'

/** Runs git and returns what it prints. Faults: demo/refused when it fails. */
export async function gitOutput(
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const result = await runProcess({
    argv: ['git', ...args],
    cwd,
    env: environment,
    timeoutMs: DEMO_TIMEOUT_MS,
    maxOutputBytes: 1024 * 1024,
  })
  if (result.code === 0) return result.stdout.toString('utf8')
  throw fault('demo/refused', { reason: `git ${args[0]}: ${result.stderr.toString('utf8')}` })
}
