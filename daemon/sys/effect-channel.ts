import { channel } from 'node:diagnostics_channel'
import type { Effect } from '../core/effects.ts'

/** Name of the diagnostics channel on which effects are published. */
const EFFECT_CHANNEL = 'caduceus:effect'

/**
 * Publishes an effect on Node's diagnostics channel `caduceus:effect`, synchronously. Costs nothing
 * without a subscriber; tests subscribe from a preload and may end the process at the n-th effect.
 */
export function announceEffect(effect: Effect): void {
  channel(EFFECT_CHANNEL).publish(effect)
}
