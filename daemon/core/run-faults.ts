import type { FaultSpec } from './fault-classes.ts'

/** Faults of a run: its worker, its result, its publication. */
export const RUN_FAULTS = {
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
  'run/runner-failed': {
    class: 'infrastructure',
    message: 'The process that was to carry the run {run} ended before it had begun.',
    next: 'What it said is in {output}; one that the system killed, for want of memory say, said nothing.',
  },
  'run/no-progress': {
    class: 'terminal',
    message:
      'The run {run} was taken over {count} times at the stage "{stage}" and came no further.',
    next: 'What its processes said is in {output}.',
  },
  'publish/forbidden-word': {
    class: 'terminal',
    message: 'The {where} contains the forbidden word "{word}"; nothing was published.',
    next: 'The work is kept at {tree}. After a change of comment_forbidden_strings reset publishes it; after a change of the worker add --force-finalization-reset, which runs the worker again.',
  },
  'publish/too-long': {
    class: 'terminal',
    message: 'The {where} has {found} {unit}; the limit is {limit}.',
    next: 'The work is kept at {tree}. As it is it will not fit; add --force-finalization-reset, which runs the worker again.',
  },
  'publish/no-changes': {
    class: 'terminal',
    message: 'The worker succeeded but changed nothing.',
    next: 'Read its summary on the issue; labelling the issue anew also begins again.',
  },
  'publish/policy': {
    class: 'terminal',
    message: 'The change breaks a rule of this installation: {reason}.',
    next: 'The work is kept at {tree}. After a change of that rule reset publishes it; else add --force-finalization-reset, which runs the worker again.',
  },
  'publish/closed-unmerged': {
    class: 'terminal',
    message: 'Pull request #{number} was closed without being merged.',
    next: 'Read the discussion there; labelling the issue anew also begins again.',
  },
  'publish/pull-gone': {
    class: 'terminal',
    message: 'Pull request #{number} is not there any more.',
    next: 'It may have been deleted, or the token may no longer see it.',
  },
  'publish/pending': {
    class: 'infrastructure',
    message: 'It is not known yet whether {stage} took effect; looked at again from {until}.',
    next: '',
  },
} as const satisfies Record<string, FaultSpec>
