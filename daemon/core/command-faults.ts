import type { FaultSpec } from './fault-classes.ts'

/** Faults of issues, of commands, and our own. */
export const COMMAND_FAULTS = {
  'issue/withdrawn': {
    class: 'cancelled',
    message: '{issue} was withdrawn: {reason}.',
    next: '',
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
