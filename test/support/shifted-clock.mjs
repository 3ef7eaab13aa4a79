// A preload (NODE_OPTIONS=--import): this process's wall clock runs ahead by the milliseconds written
// in the file that TEST_CLOCK_FILE names, so that all processes of a test share one clock.
// Timers stay real; whoever sleeps by the wall clock wakes within his own polling interval.
import { readFileSync } from 'node:fs'
import './pass-on.mjs'

/** How long an offset is believed before the file is read again, in real milliseconds. */
const BELIEVED_MS = 5

const file = process.env.TEST_CLOCK_FILE
if (file !== undefined) {
  const RealDate = Date
  const realNow = Date.now
  let offset = 0
  let readAt = Number.NEGATIVE_INFINITY

  const now = () => {
    const elapsed = performance.now()
    if (elapsed - readAt > BELIEVED_MS) {
      readAt = elapsed
      offset = readOffset(offset)
    }
    return realNow() + offset
  }
  const readOffset = (last) => {
    try {
      return Number(readFileSync(file, 'utf8'))
    } catch {
      return last
    }
  }

  RealDate.now = now
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
  })
}
