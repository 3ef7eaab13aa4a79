import type { EndReason } from '../core/end-reasons.ts'
import type { Launch } from '../core/supervision-files.ts'

/** What is known of a living worker at one moment. Times in milliseconds since the epoch. */
export type Observation = Readonly<{
  now: number
  deadlineAt: number
  cancelRequested: boolean
  /** The supervisor itself was asked to end. */
  signalled: boolean
  transcriptFailed: boolean
  /** The result file claims success. */
  hasResult: boolean
  /** How long output, result and tree have been unchanged. */
  quietMs: number
}>

export type EndLimits = Pick<Launch, 'completionGraceMs' | 'stallMs'>

type Rule = Readonly<{
  reason: EndReason
  applies: (seen: Observation, limits: EndLimits) => boolean
}>

/** In order of precedence: what was asked for comes before what the time brings. */
const RULES: readonly Rule[] = [
  { reason: 'cancelled', applies: (seen) => seen.cancelRequested },
  { reason: 'signal', applies: (seen) => seen.signalled },
  { reason: 'transcript-failed', applies: (seen) => seen.transcriptFailed },
  {
    reason: 'completion-grace',
    applies: (seen, { completionGraceMs }) =>
      completionGraceMs > 0 && seen.hasResult && seen.quietMs >= completionGraceMs,
  },
  { reason: 'deadline', applies: (seen) => seen.now >= seen.deadlineAt },
  {
    reason: 'stalled',
    applies: (seen, { stallMs }) => stallMs > 0 && seen.quietMs >= stallMs,
  },
]

/** Why a living worker has to be ended now, or null. */
export function decideEnd(seen: Observation, limits: EndLimits): EndReason | null {
  return RULES.find((rule) => rule.applies(seen, limits))?.reason ?? null
}
