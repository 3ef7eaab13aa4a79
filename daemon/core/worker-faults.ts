import type { FaultSpec } from './fault-classes.ts'

/** Faults of a worker, its result and its supervisor. */
export const WORKER_FAULTS = {
  'worker/command-missing': {
    class: 'infrastructure',
    message: 'The worker command {program} does not exist.',
    next: 'Set worker_command to an executable file.',
  },
  'worker/command-not-executable': {
    class: 'infrastructure',
    message: 'The worker command {program} is not an executable file.',
    next: 'Make it executable: chmod +x {program}',
  },
  'worker/exited': {
    class: 'worker',
    message: 'The worker ended with {ending}.',
    next: 'Its output is in {transcript}.',
  },
  'worker/timed-out': {
    class: 'worker',
    message: 'The worker was ended after {seconds} s, its time limit.',
    next: 'Its output is in {transcript}; raise worker_timeout_seconds if it needs longer.',
  },
  'worker/stalled': {
    class: 'worker',
    message: 'The worker was ended after {seconds} s without output or change.',
    next: 'Its output is in {transcript}; raise worker_stall_seconds if it needs longer.',
  },
  'worker/transcript-failed': {
    class: 'infrastructure',
    message: 'The output of the worker could not be written to {transcript}: {reason}.',
    next: 'Check free space there.',
  },
  'worker/supervisor-failed': {
    class: 'infrastructure',
    message: 'The supervisor of the worker failed: {reason}.',
    next: '',
  },
  'worker/reported-failure': {
    class: 'worker',
    message: 'The worker reported status "{status}": {summary}',
    next: 'Its output is in {transcript}.',
  },
  'worker/result-missing': {
    class: 'worker',
    message: 'The worker left no worker-result.json.',
    next: 'Its output is in {transcript}.',
  },
  'worker/result-unreadable': {
    class: 'worker',
    message: 'worker-result.json cannot be read: {reason}.',
    next: 'Its output is in {transcript}.',
  },
  'worker/result-invalid': {
    class: 'worker',
    message: 'worker-result.json is not valid: {reason}.',
    next: 'The fields it may have are described in docs/the-bridge.md.',
  },
  'worker/tree-unusable': {
    class: 'worker',
    message: 'The worker left something in its tree that cannot be published: {reason}.',
    next: 'The tree is kept at {tree}.',
  },
  'worker/interrupted': {
    class: 'interrupted',
    message: 'The run was cut off before the worker finished ({reason}).',
    next: '',
  },
  'worker/prompt-too-large': {
    class: 'terminal',
    message: 'The prompt for {issue} would be {bytes} bytes; the limit is {maxBytes}.',
    next: 'Shorten the issue or worker_instruction, then label the issue again.',
  },
  'worker/context-too-large': {
    class: 'terminal',
    message: 'One event of {issue} alone exceeds the context limit of {maxBytes} bytes.',
    next: 'Shorten it on GitHub, then label the issue again.',
  },
} as const satisfies Record<string, FaultSpec>
