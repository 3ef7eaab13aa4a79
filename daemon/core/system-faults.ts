import type { FaultSpec } from './fault-classes.ts'

/** Faults of the system below us: files, processes, native calls. */
export const SYSTEM_FAULTS = {
  'sys/native-unavailable': {
    class: 'config',
    message: 'The native interface could not be loaded: {reason}.',
    next: 'Reinstall the package on this machine: npm ci',
  },
  'sys/unsupported-platform': {
    class: 'config',
    message: 'Caduceus runs on Linux and macOS, not on {platform}.',
    next: 'Run it on one of these.',
  },
  'sys/io': {
    class: 'infrastructure',
    message: '{operation} of {path} failed: {reason}.',
    next: 'Check free space and permissions there.',
  },
  'sys/spawn-failed': {
    class: 'infrastructure',
    message: '{program} could not be started: {reason}.',
    next: 'Check that it is installed and executable.',
  },
  'sys/process-timeout': {
    class: 'infrastructure',
    message: '{program} did not finish within {seconds} s and was ended.',
    next: '',
  },
  'sys/process-aborted': {
    class: 'interrupted',
    message: '{program} was ended because it is no longer wanted.',
    next: '',
  },
  'sys/output-too-large': {
    class: 'infrastructure',
    message: '{program} printed more than {maxBytes} bytes.',
    next: '',
  },
  'sys/unkillable': {
    class: 'infrastructure',
    message: 'Processes of the run {run} could not be ended.',
    next: 'Look at them with ps; the run stays reserved until they are gone.',
  },
} as const satisfies Record<string, FaultSpec>
