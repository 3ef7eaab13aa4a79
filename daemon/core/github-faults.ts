import type { FaultSpec } from './fault-classes.ts'

/** Faults of talking to GitHub. */
export const GITHUB_FAULTS = {
  'github/unreachable': {
    class: 'infrastructure',
    message: 'GitHub could not be reached for {request}: {reason}.',
    next: '',
  },
  'github/failed': {
    class: 'infrastructure',
    message: 'GitHub answered {status} to {request}: {reason}',
    next: '',
  },
  'github/bad-answer': {
    class: 'infrastructure',
    message: 'GitHub answered {request} with something unexpected: {reason}.',
    next: '',
  },
  'github/refused': {
    class: 'terminal',
    message: 'GitHub refused {request} ({status}): {reason}',
    next: 'Check the permissions of the token (contents, issues and pull requests: write).',
  },
  'github/not-found': {
    class: 'infrastructure',
    message: '{what} was not found on GitHub.',
    next: 'Check its name and the token’s access to it.',
  },
  'github/too-many-pages': {
    class: 'infrastructure',
    message: '{request} has more than {pages} pages.',
    next: 'Raise discovery_max_pages.',
  },
  'github/rate-limited': {
    class: 'rate-limited',
    message: 'GitHub limits requests ({kind}) until {until}.',
    next: 'Nothing to do; work goes on by itself then.',
  },
} as const satisfies Record<string, FaultSpec>
