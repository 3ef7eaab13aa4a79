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
    description: 'How long transcripts, reports and finished issues are kept.',
  },
  worktree_gc_older_than_days: {
    ...DAYS,
    default: 1,
    description: 'Trees that no run needs are removed after this time.',
  },
  worktree_gc_disabled: {
    ...SWITCH,
    default: false,
    description: 'Never remove trees by itself.',
  },
  archive_on_retry: {
    ...SWITCH,
    default: false,
    description: 'Keep a copy of a failed attempt’s tree before the next attempt.',
  },
  attic_retention_days: {
    ...DAYS,
    default: 30,
    description: 'How long such copies are kept.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>

/** When a repository that keeps failing is left alone for a while. */
export const CIRCUIT_KEYS = {
  circuit_failure_threshold: {
    ...COUNT,
    default: 3,
    description: 'Failures of infrastructure in a row after which a repository is left alone.',
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
    description: 'How long it is left alone before it is tried again.',
  },
  circuit_max_degraded_seconds: {
    ...SECONDS,
    default: 86_400,
    description: 'An issue that cannot be worked on for this long needs attention.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>
