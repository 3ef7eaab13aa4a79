/** The demo's repository and the people in it. */
export const DEMO = {
  repository: 'octo/timesheet',
  bot: 'automation-bot',
  author: 'alice',
  attempts: 3,
  labels: { code: '🤖 auto-fix', investigation: '🤖 auto-fix-investigate' },
} as const

export type DemoStory = Readonly<{
  kind: 'code' | 'investigation'
  mode: 'fix' | 'fail' | 'investigate'
  dryRun: boolean
  /** Whether the daemon is killed at work, so that it has to wait for writes whose effect is unknown. */
  crash: boolean
}>

/** Phases in which nothing more happens by itself. */
export const DEMO_ENDS: readonly string[] = [
  'awaiting_review',
  'done',
  'previewed',
  'failed',
  'needs_attention',
  'skipped',
]

/** How long git and the project's tests may take here. */
export const DEMO_TIMEOUT_MS = 60_000
