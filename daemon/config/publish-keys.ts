import type { JSONSchema } from 'json-schema-to-ts'
import { BYTES, COUNT, NAMES, SECONDS_OR_ZERO, SWITCH } from './key-kinds.ts'

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
