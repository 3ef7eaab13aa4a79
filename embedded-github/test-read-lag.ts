// Read-after-write lag, which tests script: GitHub's lists can omit for a while what was just created, although
// reading it by itself, counters and uniqueness checks already know of it (seen in the field: empty lists right
// after a successful POST). Everything created has an id from one rising counter, so what one request made is a
// range of ids.

/** Ranges of ids that lists do not show yet. */
export type VisibilityLag = HiddenRange[]

type HiddenRange = {
  readonly fromId: number
  /** Exclusive. */
  readonly toId: number
  readonly untilMs: number | null
  readsLeft: number | null
}

/** How long: a time, a number of list requests that would have shown it, or whichever ends first. */
export type LagLength = Readonly<{ lagMs?: number; reads?: number }>

/** Hides from lists what got an id from `fromId` to before `toId`. */
export function hide(
  lag: VisibilityLag,
  fromId: number,
  toId: number,
  length: LagLength,
  now: number,
): void {
  if (fromId === toId) return
  const untilMs = length.lagMs === undefined ? null : now + length.lagMs
  lag.push({ fromId, toId, untilMs, readsLeft: length.reads ?? null })
}

/** What a list shows of its items at `now`; a range that hid an item has one read fewer. */
export function visibleIn<Item extends Readonly<{ id: number }>>(
  lag: VisibilityLag,
  items: readonly Item[],
  now: number,
): readonly Item[] {
  const over = lag.filter((range) => isOver(range, now))
  for (const range of over) lag.splice(lag.indexOf(range), 1)
  const touched = new Set<HiddenRange>()
  const visible = items.filter((item) => {
    const range = lag.find(({ fromId, toId }) => fromId <= item.id && item.id < toId)
    if (range !== undefined) touched.add(range)
    return range === undefined
  })
  for (const range of touched) if (range.readsLeft !== null) range.readsLeft -= 1
  return visible
}

const isOver = (range: HiddenRange, now: number): boolean =>
  (range.untilMs !== null && now >= range.untilMs) ||
  (range.readsLeft !== null && range.readsLeft <= 0)
