import type { FaultSpec } from './fault-classes.ts'

/** Faults of the configuration and the token. */
export const CONFIG_FAULTS = {
  'config/not-found': {
    class: 'config',
    message: 'No configuration was found (looked at {looked}).',
    next: 'Write one of these files, or name one with CADUCEUS_CONFIG.',
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
    next: 'Set CADUCEUS_GITHUB_TOKEN, or github_token in the configuration, or log in with: gh auth login',
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
} as const satisfies Record<string, FaultSpec>
