import { join } from 'node:path'
import type { Build } from '../app/build.ts'
import { DEMO, type DemoStory } from './demo-story.ts'

/**
 * A write whose effect is unknown is repeated once its time is over and GitHub has had time to show it. The
 * embedded GitHub shows everything at once, and nobody wants to watch minutes pass.
 */
const SHORT_WAITS = { publish_settle_seconds: 1, git_timeout_seconds: 10 }

/** So that there is something to kill at work: on a fast machine all is over within a moment. */
const THINKING_SECONDS = '3'

export function worldOf(
  root: string,
  build: Build,
  token: string,
  story: DemoStory,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return {
    PATH: `${join(build.templates, 'demo')}:${environment['PATH'] ?? ''}`,
    HOME: join(root, 'home'),
    LANG: environment['LANG'] ?? 'C.UTF-8',
    CADUCEUS_CONFIG: join(root, 'config.yaml'),
    CADUCEUS_GITHUB_TOKEN: token,
    OPENCODE_DEMO_MODE: story.mode,
    ...(story.crash ? { OPENCODE_DEMO_SECONDS: THINKING_SECONDS } : {}),
    ...(story.dryRun ? { CADUCEUS_DRY_RUN: '1' } : {}),
  }
}

/** JSON is YAML, so no text needs quoting of our own. */
export function configuration(
  root: string,
  build: Build,
  url: string,
  { crash }: DemoStory,
): string {
  const config = {
    watched_repos: [DEMO.repository],
    api_base: url,
    workdir_base: join(root, 'projects'),
    state_dir: join(root, 'state'),
    worker_command: ['python3', join(build.root, 'plugin-assets', 'worker-bridge.py')],
    max_retries_per_issue: DEMO.attempts,
    retry_backoff_seconds: 1,
    ...(crash ? SHORT_WAITS : {}),
  }
  return `${JSON.stringify(config, null, 2)}\n`
}
