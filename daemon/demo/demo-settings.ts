import { join } from 'node:path'
import type { Build } from '../app/build.ts'
import { DEMO, type DemoStory } from './demo-story.ts'

/**
 * Short settle windows: a write whose effect is unknown is repeated only after GitHub has had time to show it,
 * and the embedded GitHub shows everything at once.
 */
const SHORT_WAITS = { publish_settle_seconds: 1, git_timeout_seconds: 10 }

/** How long the worker takes in a demo with crashes; without this it may be over before it can be killed. */
const THINKING_SECONDS = '3'

/** The environment of the program under demonstration: its token, its configuration, and a demo worker on PATH. */
export function environmentOf(
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

/** The configuration file. It is written as JSON, which is YAML as well. */
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
