import type { FaultSpec } from './fault-classes.ts'

/** Faults of what has to be right before anything runs: configuration, token, state, the command itself. */
export const SETUP_FAULTS = {
  'config/not-found': {
    class: 'config',
    message: 'No configuration was found (looked at {looked}).',
    next: 'Run "caduceus setup", which writes one, or name a file with CADUCEUS_CONFIG.',
  },
  'config/unreadable': {
    class: 'config',
    message: 'The configuration {path} cannot be read: {reason}.',
    next: 'Mend the file or its permissions, then run: caduceus config validate',
  },
  'config/no-section': {
    class: 'config',
    message: '{path} has no section "{section}:".',
    next: 'Add the section with watched_repos, or write a configuration of its own.',
  },
  'config/invalid': {
    class: 'config',
    message: 'The configuration {path} has {count} problem(s): {problems}',
    next: 'Mend them, then run: caduceus config validate',
  },
  'config/environment': {
    class: 'config',
    message: 'The environment variable {name} is {found}; wanted: {wanted}.',
    next: 'Correct or unset it.',
  },
  'config/executor-unavailable': {
    class: 'config',
    message: 'executor_mode {mode} is not available in this version.',
    next: 'Set executor_mode: trusted_host, or wait for the container executor.',
  },
  'token/not-found': {
    class: 'config',
    message: 'No GitHub token was found ({tried}).',
    next: 'Set CADUCEUS_GITHUB_TOKEN (under Hermes in its .env file), or github_token in the configuration, or log in with: gh auth login',
  },
  'token/rejected': {
    class: 'config',
    message: 'GitHub rejected the token ({status}).',
    next: 'Replace the token; it may have expired or been revoked.',
  },
  'token/malformed': {
    class: 'config',
    message:
      'The GitHub token holds a character that no token has (a space, a line break or the like).',
    next: 'Set it again, without surrounding text.',
  },
  'state/corrupt': {
    class: 'state',
    message: '{path} is not readable as state: {reason}. {kept}',
    next: 'Restore the file from a backup, or move it away to begin with an empty state.',
  },
  'state/format-of-original': {
    class: 'state',
    message: '{path} has format {found}, written by the original implementation.',
    next: 'Use another state_dir, or move the file away to begin with an empty state.',
  },
  'state/format-newer': {
    class: 'state',
    message: '{path} has format {found}; this version knows {known}.',
    next: 'Install the newer version that wrote it.',
  },
  'state/stale-schema': {
    class: 'state',
    message: '{path} is a database with schema {found}; this version reads only {known}.',
    next: 'Use an empty state_dir; there is no migration from that schema.',
  },
  'state/directory-refused': {
    class: 'config',
    message: '{path} cannot be used to keep state: {reason}.',
    next: 'Set state_dir to a directory of your own.',
  },
  'state/lock-busy': {
    class: 'infrastructure',
    message: 'The lock {path} stayed taken for {seconds} s.',
    next: 'Another command is working on the state; try again.',
  },
  'state/claim-mismatch': {
    class: 'terminal',
    message: 'The run {run} no longer owns {issue} (found: {found}).',
    next: 'Look at: caduceus status',
  },
  'issue/withdrawn': {
    class: 'cancelled',
    message: '{issue} was withdrawn: {reason}.',
    next: '',
  },
  'issue/ambiguous': {
    class: 'cancelled',
    message: '{issue} has both trigger labels.',
    next: 'Remove one of them; it is worked on then.',
  },
  'issue/has-pull': {
    class: 'cancelled',
    message: '{issue} already has an open pull request that closes it: {pull} by {author}.',
    next: 'Close that one or set existing_pr: ignore, then run: caduceus queue reset {issue}',
  },
  'queue/unknown': {
    class: 'state',
    message: '{issue} is not in the queue.',
    next: 'See what is: caduceus queue list',
  },
  'queue/refused': {
    class: 'state',
    message: '{issue} is {phase}, which "queue {verb}" does not change.',
    next: '{hint}',
  },
  'queue/run-alive': {
    class: 'state',
    message: '{issue} is being worked on by the run {run}.',
    next: 'Wait for its end, or stop it by taking the label off the issue.',
  },
  'host/absent': {
    class: 'config',
    message: 'There is no Hermes to schedule anything: {reason}.',
    next: 'Without Hermes run "caduceus daemon", or use the systemd timer or the crontab of docs/installation.md.',
  },
  'host/not-built': {
    class: 'config',
    message: 'The plugin has no built program ({path}).',
    next: 'Run: hermes caduceus setup',
  },
  'host/jobs-unreadable': {
    class: 'config',
    message: 'The list of scheduled jobs {path} cannot be read: {reason}.',
    next: 'Mend its owner and permissions; a call of hermes as root may have changed them.',
  },
  'host/jobs-malformed': {
    class: 'state',
    message: '{path} is not what Hermes writes: {reason}.',
    next: 'Look at: hermes cron list',
  },
  'cron/duplicate-jobs': {
    class: 'state',
    message: '{count} scheduled jobs run {script}: {ids}.',
    next: 'Remove all but one with "hermes cron remove ID", or all with "hermes caduceus cron-remove".',
  },
  'cron/foreign-job': {
    class: 'state',
    message: 'A scheduled job that is not ours has the name {name}: {ids}.',
    next: 'Give it another name: hermes cron edit {id} --name NAME',
  },
  'cron/foreign-wrapper': {
    class: 'state',
    message: '{path} was not made by Caduceus.',
    next: 'Move it away, then run: hermes caduceus cron-install',
  },
  'cron/unquotable-path': {
    class: 'config',
    message:
      'The path {path} has a line break or another control character, which no script can hold.',
    next: 'Use a folder without such characters.',
  },
  'cron/not-reached': {
    class: 'infrastructure',
    message: 'Hermes did not {verb} the job: {reason}.',
    next: 'Look at "hermes cron list", then run the same command again; it goes on from what it finds.',
  },
  'daemon/running': {
    class: 'state',
    message: 'The daemon with process id {pid} already works in {path}.',
    next: 'Stop that one first, or leave it at work.',
  },
  'setup/section-refused': {
    class: 'config',
    message: 'The section "caduceus:" cannot be added to {path}: {reason}.',
    next: 'Add it yourself, as shown, then run setup again.',
  },
  'setup/template-missing': {
    class: 'internal',
    message: 'The build lacks the template of the bridge ({path}).',
    next: 'Build it anew: hermes caduceus setup, or without Hermes: npm run build',
  },
  'setup/bridge-broken': {
    class: 'config',
    message: 'The bridge {path} is a link that leads nowhere.',
    next: 'Correct or remove the link, then run setup again.',
  },
  'usage/invalid': {
    class: 'usage',
    message: '{reason}',
    next: 'See: caduceus {command} --help',
  },
  'demo/failed': {
    class: 'internal',
    message: 'The demo did not reach its end: {reason}.',
    next: 'Everything is kept in {path}.',
  },
  'demo/refused': {
    class: 'internal',
    message: 'The embedded GitHub refused: {reason}.',
    next: '',
  },
  'internal/unexpected': {
    class: 'internal',
    message: 'Something unexpected happened: {reason}.',
    next: 'Please report it with the log.',
  },
} as const satisfies Record<string, FaultSpec>
