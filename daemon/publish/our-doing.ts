import type { ActionInput } from './action-input.ts'

/**
 * Those of some things on GitHub that we did: our account as it was when the texts were pinned, or the one whose
 * token has taken its place since. That one is asked for only when another account did one of them.
 */
export async function doneByUs<T>(
  { github, publication: { actorId } }: ActionInput,
  things: readonly T[],
  doerOf: (thing: T) => number | null,
): Promise<readonly T[]> {
  if (things.every((thing) => doerOf(thing) === actorId)) return things
  const { id } = await github.viewer()
  return things.filter((thing) => doerOf(thing) === actorId || doerOf(thing) === id)
}
