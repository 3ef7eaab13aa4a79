// Shapes that many configuration keys share. Seconds end where Node's timers do (2^31 ms, 24 days).

const MAX_SECONDS = 2_147_483

export const SECONDS = { type: 'integer', minimum: 1, maximum: MAX_SECONDS } as const
/** Seconds where 0 has a meaning of its own. */
export const SECONDS_OR_ZERO = { type: 'integer', minimum: 0, maximum: MAX_SECONDS } as const
export const DAYS = { type: 'integer', minimum: 1, maximum: 36_500 } as const
export const COUNT = { type: 'integer', minimum: 1, maximum: 1_000_000 } as const
/** A count where 0 has a meaning of its own. */
export const COUNT_OR_ZERO = { type: 'integer', minimum: 0, maximum: 1_000_000 } as const
export const BYTES = { type: 'integer', minimum: 1, maximum: 1_099_511_627_776 } as const
export const SWITCH = { type: 'boolean' } as const
/** Relative paths count from the folder of the configuration file. */
export const PATH = { type: 'string', minLength: 1 } as const
export const LABEL = { type: 'string', pattern: String.raw`\S`, maxLength: 50 } as const
export const NAMES = {
  type: 'array',
  items: { type: 'string', minLength: 1, maxLength: 256 },
  maxItems: 1000,
} as const
