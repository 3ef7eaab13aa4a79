import type { JSONSchema } from 'json-schema-to-ts'
import { COUNT, COUNT_OR_ZERO, LABEL, NAMES, PATH, SECONDS, SWITCH } from './key-kinds.ts'

/** What is watched, how often, and how much is begun at once. */
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
      'What to do with an issue for which a person already has an open pull request: leave it, or work on it all the same.',
  },
} as const satisfies Readonly<Record<string, JSONSchema>>
