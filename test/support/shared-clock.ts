import { join } from 'node:path'
import { writeFileAtomic } from '../../daemon/sys/files.ts'

/** One wall clock for all processes of a test that are started with `env`. */
export type SharedClock = Readonly<{
  env: Readonly<{ NODE_OPTIONS: string; TEST_CLOCK_FILE: string }>
  advance(ms: number): void
  now(): number
}>

/** A clock that starts at the real time; its file lies in `dir`, which the test removes. */
export function createSharedClock(dir: string): SharedClock {
  const file = join(dir, 'clock-offset')
  const preload = new URL('./shifted-clock.mjs', import.meta.url).href
  let offset = 0
  const publish = (): void => writeFileAtomic(file, String(offset))
  publish()
  return {
    env: { NODE_OPTIONS: `--import=${preload}`, TEST_CLOCK_FILE: file },
    advance(ms) {
      offset += ms
      publish()
    },
    now: () => Date.now() + offset,
  }
}
