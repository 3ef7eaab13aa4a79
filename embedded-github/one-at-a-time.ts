/** Runs work after all work given before it has ended, well or badly. */
export type OneAtATime = <T>(work: () => Promise<T> | T) => Promise<T>

export function createOneAtATime(): OneAtATime {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => undefined)
    return next
  }
}
