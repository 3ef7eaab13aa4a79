/** How a tick ended. */
export const TICK_OUTCOMES = {
  processed: { exitCode: 0, meaning: 'runs were started or adopted' },
  idle304: { exitCode: 0, meaning: 'GitHub reported no change' },
  idle_empty: { exitCode: 0, meaning: 'nothing to do' },
  skipped_concurrent: { exitCode: 0, meaning: 'another tick was planning' },
  skipped_cadence: { exitCode: 0, meaning: 'polled too recently' },
  rate_limited: { exitCode: 0, meaning: 'GitHub asked us to wait' },
  cancelled: { exitCode: 0, meaning: 'stopped by a signal' },
  failed: { exitCode: 1, meaning: 'the tick itself failed' },
} as const satisfies Record<string, { exitCode: 0 | 1; meaning: string }>

export type TickOutcome = keyof typeof TICK_OUTCOMES
