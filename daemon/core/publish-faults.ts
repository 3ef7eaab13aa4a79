import type { FaultSpec } from './fault-classes.ts'

/** Faults of publishing. */
export const PUBLISH_FAULTS = {
  'publish/forbidden-word': {
    class: 'terminal',
    message: 'The {where} contains the forbidden word "{word}"; nothing was published.',
    next: 'The work is kept at {tree}. Change comment_forbidden_strings or the worker, then run: caduceus queue reset {issue}',
  },
  'publish/too-long': {
    class: 'terminal',
    message: 'The {where} has {found} {unit}; the limit is {limit}.',
    next: 'The work is kept at {tree}.',
  },
  'publish/no-changes': {
    class: 'terminal',
    message: 'The worker succeeded but changed nothing.',
    next: 'Read its summary on the issue; label the issue again to try once more.',
  },
  'publish/policy': {
    class: 'terminal',
    message: 'The change breaks a rule of this installation: {reason}.',
    next: 'The work is kept at {tree}.',
  },
  'publish/closed-unmerged': {
    class: 'terminal',
    message: 'Pull request #{number} was closed without being merged.',
    next: 'Label {issue} again to try once more.',
  },
  'publish/ambiguous': {
    class: 'terminal',
    message: '{what} exists more than once for this run.',
    next: 'Look at {where} and keep one.',
  },
  'publish/pending': {
    class: 'infrastructure',
    message: 'It is not known yet whether {stage} took effect; looked at again from {until}.',
    next: '',
  },
} as const satisfies Record<string, FaultSpec>
