/**
 * Runs a task for every item, at most `limit` at a time, and waits for all of them. The results stand
 * in the order of the items; the task catches its own faults.
 */
export async function eachBounded<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>()
  const queue = items.entries()
  const work = async (): Promise<void> => {
    for (const [at, item] of queue) results.set(at, await task(item))
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work))
  return [...results.entries()].sort(([a], [b]) => a - b).map(([, result]) => result)
}
