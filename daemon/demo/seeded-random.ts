/** `count` different items of a list, in their order. */
export function sample<T>(random: () => number, list: readonly T[], count: number): readonly T[] {
  const ranked = list.map((item, position) => ({ item, position, rank: random() }))
  const chosen = ranked.toSorted((a, b) => a.rank - b.rank).slice(0, count)
  return chosen.toSorted((a, b) => a.position - b.position).map(({ item }) => item)
}

/** Numbers in [0, 1) that follow from a seed alone (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
