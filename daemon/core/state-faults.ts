import type { FaultSpec } from './fault-classes.ts'

/** Faults of the stored state. */
export const STATE_FAULTS = {
  'state/none': {
    class: 'state',
    message: 'There is no state yet in {path}.',
    next: 'Run one tick: caduceus run',
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
  'state/refused': {
    class: 'usage',
    message: 'An entry in phase {phase} does not accept "{event}" ({issue}).',
    next: 'Look at: caduceus status',
  },
} as const satisfies Record<string, FaultSpec>
