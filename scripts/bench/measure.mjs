// Measures by pairs: what is judged and what it is compared with run in turns, so that a busy machine slows
// both. Only ratios are judged; milliseconds are for people.

import { performance } from 'node:perf_hooks'

/**
 * Median times of two tasks run in turns, and the median of the pairs' ratios.
 * @param judged, against run something once and may return the milliseconds they took themselves
 */
export async function comparePairs(pairs, judged, against) {
  const times = []
  for (let pair = 0; pair < pairs; pair += 1) {
    // In alternating order: whatever the first one warms up for the second evens out.
    const isFirst = pair % 2 === 0
    const first = await time(isFirst ? judged : against)
    const second = await time(isFirst ? against : judged)
    times.push(isFirst ? [first, second] : [second, first])
  }
  return {
    pairs,
    judgedMs: median(times.map(([ms]) => ms)),
    againstMs: median(times.map(([, ms]) => ms)),
    ratio: median(times.map(([ms, againstMs]) => ms / againstMs)),
  }
}

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

async function time(task) {
  const started = performance.now()
  const own = await task()
  return typeof own === 'number' ? own : performance.now() - started
}
