import type { JSONSchema } from 'json-schema-to-ts'
import {
  BYTES,
  COUNT,
  COUNT_OR_ZERO,
  DAYS,
  LABEL,
  NAMES,
  PATH,
  SECONDS,
  SECONDS_OR_ZERO,
  SWITCH,
} from './key-kinds.ts'

// The keys of the daemon itself: what is watched, how it is reached, what is published, what is retained.

/** What is watched, how often, and how many runs are started at once. */
export const REPOSITORY_KEYS = {
  watched_repos: {
    ...NAMES,
    default: [],
    description:
      'The repositories to watch, each as owner/name. An empty list watches nothing, unless discover is true.',
    $comment: 'owner/name as on GitHub; no repository twice (upper and lower case are the same).',
    examples: [['octocat/hello-world']],
  },
  discover: {
    ...SWITCH,
    default: false,
    description:
      'With an empty watched_repos: ask GitHub which repositories the token can see and watch those that have a clone.',
  },
  discovery_max_pages: {
    ...COUNT,
    default: 20,
    description: 'Pages of 100 repositories that discovery reads at most.',
  },
  workdir_base: {
    ...PATH,
    default: '~/projects',
    description:
      'Where your clones are: `<workdir_base>/<owner>/<name>`. They prove the origin and are never written.',
  },
  ticket_label_code: {
    ...LABEL,
    default: '🤖 auto-fix',
    description: 'The label that asks for a pull request.',
    $comment:
      'Differs from the other label, also when case and emoji variation selectors are ignored.',
  },
  ticket_label_investigation: {
    ...LABEL,
    default: '🤖 auto-fix-investigate',
    description: 'The label that asks for findings in a comment, without a change.',
    $comment:
      'Differs from the other label, also when case and emoji variation selectors are ignored.',
  },
  poll_interval_seconds: {
    ...SECONDS,
    default: 120,
    description:
      'Least time between two polls, counted from the start of the last one; 10 % slack. `run --now` does not wait for it.',
  },
  worker_parallelism: {
    ...COUNT,
    maximum: 1000,
    default: 1,
    description: 'Runs at the same time on this host.',
  },
  max_runs_per_repo: {
    ...COUNT_OR_ZERO,
    default: 1,
    description: 'Runs at the same time in one repository; 0 = no limit.',
  },
  max_issues_per_tick: {
    ...COUNT_OR_ZERO,
    description: 'Runs that one tick starts at most; 0 = no limit.',
  },
  existing_pr: {
    type: 'string',
    enum: ['skip', 'ignore'],
    default: 'skip',
    description:
      'What to do with an issue that an open pull request, by anybody, already closes: leave it, or work on it all the same.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>

/** How GitHub is reached. */
export const GITHUB_KEYS = {
  github_token: {
    type: ['string', 'null'],
    default: null,
    writeOnly: true,
    description:
      'The token for GitHub. Better kept out of this file: see the order in which tokens are looked for.',
    $comment: 'Printable characters without blanks. Never shown.',
  },
  api_base: {
    type: 'string',
    default: 'https://api.github.com',
    writeOnly: true,
    description: 'The REST interface. GitHub Enterprise Server: `https://<its name>/api/v3`.',
    $comment:
      'https://api.github.com, or https with a path under /api/v3, or http on 127.0.0.1, localhost or `[::1]`. No user part, query or fragment. Never shown in errors.',
    examples: ['https://github.example.com/api/v3'],
  },
  http_timeout_seconds: {
    ...SECONDS,
    default: 60,
    description: 'Deadline of one request.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>

/** What becomes of a worker's result. */
export const PUBLISH_KEYS = {
  dry_run: {
    ...SWITCH,
    default: false,
    description:
      'Do everything but commit, push and write to GitHub; a report shows what would have happened.',
  },
  comment_forbidden_strings: {
    type: 'array',
    items: { type: 'string', pattern: String.raw`\S`, maxLength: 256 },
    maxItems: 1000,
    default: ['caduceus', 'opencode', 'gentle-ai', 'engram', 'hermes', 'worker-bridge'],
    description:
      'Words that must not appear in anything published. A list of yours replaces the default; an empty one is warned about.',
  },
  close_issue: {
    type: 'string',
    enum: ['finalize', 'merge', 'never'],
    default: 'finalize',
    description:
      'When an issue is closed: with the pull request made, when it is merged, or never.',
  },
  remove_label_on_completion: {
    ...SWITCH,
    default: true,
    description: 'Take the label off an issue when its run is done.',
  },
  publish_settle_seconds: {
    ...SECONDS_OR_ZERO,
    default: 120,
    description:
      'After a write whose outcome is unknown: how long to wait for it to show before it is tried again.',
  },
  protected_paths: {
    ...NAMES,
    default: ['.github/workflows/**'],
    description: 'Globs of files a worker must not change; a change there is not published.',
    $comment: 'Relative to the top of the repository, with / between names.',
  },
  max_changed_files: {
    ...COUNT,
    default: 5000,
    description: 'Largest number of changed files that is published.',
  },
  max_diff_bytes: {
    ...BYTES,
    default: 52_428_800,
    description: 'Largest sum of changed content that is published.',
  },
  max_file_bytes: {
    ...BYTES,
    default: 52_428_800,
    description: 'Largest single file that is published.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>

/** Where files are, and how long they are retained. */
export const STATE_KEYS = {
  state_dir: {
    ...PATH,
    description: 'The daemon’s own folder: queue, runs, claims, trees.',
    $comment: 'A folder, or nothing yet; not a symbolic link.',
  },
  state_backend: {
    type: 'string',
    enum: ['json', 'sqlite'],
    default: 'json',
    description:
      'How the queue is stored: as JSON, or in SQLite (not available yet: only json is accepted in this version).',
  },
  log_path: {
    ...PATH,
    description: 'The log, JSON lines.',
  },
  repo_storage_root: {
    ...PATH,
    description: 'Where the daemon keeps its own bare copy of each repository.',
    $comment: 'A folder with mode 0700, or nothing yet; not a symbolic link.',
  },
  git_timeout_seconds: {
    ...SECONDS,
    default: 300,
    description: 'Deadline of one git command.',
  },
  run_retention_days: {
    ...DAYS,
    default: 30,
    description:
      'How long the files of runs that are over are kept, work that was not published included, and how long issues that have ended stay in the queue. One that still carries its label stays.',
  },
  worktree_gc_older_than_days: {
    ...DAYS,
    default: 1,
    description:
      'Trees that no run needs are removed after this time. The last one of an issue that needs attention, has failed or was previewed is kept for `run_retention_days`.',
  },
  worktree_gc_disabled: {
    ...SWITCH,
    default: false,
    description:
      'Never remove trees because of their age. A new attempt still replaces the tree of the one before it.',
  },
  archive_on_retry: {
    ...SWITCH,
    default: false,
    description:
      'Move the tree of an earlier attempt to `<state_dir>/attic` when the next one makes its own, instead of removing it.',
  },
  attic_retention_days: {
    ...DAYS,
    default: 30,
    description: 'How long trees are kept there.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>

/** When one repository, or GitHub as a whole, gets no new work after failures (core/circuits.ts). */
export const CIRCUIT_KEYS = {
  circuit_failure_threshold: {
    ...COUNT,
    default: 3,
    description:
      'Failures in a row after which a repository, or GitHub as a whole, is given no new work.',
  },
  circuit_backoff_seconds: {
    type: 'array',
    items: SECONDS,
    minItems: 1,
    maxItems: 100,
    default: [30, 120, 600],
    description:
      'Waits after the first, second, … failure below the threshold; the last one repeats.',
  },
  circuit_open_interval_seconds: {
    ...SECONDS,
    default: 1800,
    description: 'How long that lasts; then one run tries.',
  },
  circuit_max_degraded_seconds: {
    ...SECONDS,
    default: 86_400,
    description: 'An issue that cannot be worked on for this long needs attention.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>
