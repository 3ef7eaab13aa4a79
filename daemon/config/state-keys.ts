import type { JSONSchema } from 'json-schema-to-ts'
import { COUNT, DAYS, PATH, SECONDS, SWITCH } from './key-kinds.ts'

/** Where things are kept, and for how long. */
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
    description: 'How the queue is stored.',
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

/** When what keeps failing is left alone for a while: one repository, or GitHub (core/circuits.ts). */
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
