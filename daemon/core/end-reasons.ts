/** Why a run ended; recorded once, the first reason wins. */
export const END_REASONS = {
  exited: 'the worker ended by itself or by a signal from elsewhere',
  deadline: 'the worker used up its time',
  cancelled: 'the control file asked for the end',
  'completion-grace': 'the worker lingered after a valid result',
  stalled: 'no output and no change in the tree for too long',
  signal: 'the supervisor was asked to end by a signal',
  'spawn-failed': 'the worker could not be started',
  'transcript-failed': 'the output of the worker could not be stored',
  'supervisor-failed': 'the supervisor had a fault of its own',
} as const satisfies Record<string, string>

export type EndReason = keyof typeof END_REASONS
