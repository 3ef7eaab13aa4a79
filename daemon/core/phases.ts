/**
 * The phases of an issue's life (design §6, R§4.2).
 * `slot`: counts against worker_parallelism. `terminal`: nothing happens by itself any more.
 */
export const PHASES = {
  awaiting_review: { slot: false, terminal: false, meaning: 'a pull request waits for a human' },
  done: { slot: false, terminal: true, meaning: 'merged, or findings posted' },
  failed: { slot: false, terminal: true, meaning: 'the retry budget is spent' },
  in_progress: { slot: true, terminal: false, meaning: 'a run holds it' },
  needs_attention: { slot: false, terminal: true, meaning: 'a human has to decide' },
  previewed: { slot: false, terminal: false, meaning: 'a dry run wrote its report' },
  queued: { slot: false, terminal: false, meaning: 'waits for a run' },
  skipped: { slot: false, terminal: true, meaning: 'withdrawn before it was done' },
} as const satisfies Record<string, { slot: boolean; terminal: boolean; meaning: string }>

export type Phase = keyof typeof PHASES
