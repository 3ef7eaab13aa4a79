import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { systemClock } from '../../daemon/sys/clock.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'
import { createSharedClock } from '../support/shared-clock.ts'
import { actorsOf } from '../support/start-actor.ts'
import { waitUntil } from '../support/wait-until.ts'

const DAY_MS = 86_400_000

let program: ReturnType<typeof bundleFixture>
let actors: ReturnType<typeof actorsOf>
let root: string

beforeAll(() => {
  program = bundleFixture('sys-actor')
  actors = actorsOf(program.path)
  root = mkdtempSync(join(tmpdir(), 'clock-'))
})

afterEach(() => actors.endAll())

afterAll(() => {
  program.remove()
  rmSync(root, { recursive: true, force: true })
})

describe('sleeping', () => {
  test('lasts as long as asked for, not less', async () => {
    const start = performance.now()
    await systemClock.sleep(120)
    expect(performance.now() - start).toBeGreaterThanOrEqual(119)
    await systemClock.sleep(0)
    await systemClock.sleep(-5)
  })

  test('ends with an abort, before or during it, and leaves no listener', async () => {
    const controller = new AbortController()
    const sleeping = systemClock.sleep(DAY_MS, controller.signal)
    expect(getEventListeners(controller.signal, 'abort').length).toBe(1)
    controller.abort()
    await sleeping
    await systemClock.sleep(DAY_MS, controller.signal)
    expect(getEventListeners(controller.signal, 'abort').length).toBe(0)
  })

  test('one signal ends many at the same time, without a warning', async () => {
    const controller = new AbortController()
    const sleeping = Array.from({ length: 50 }, () => systemClock.sleep(DAY_MS, controller.signal))
    controller.abort()
    await Promise.all(sleeping)
    expect(getEventListeners(controller.signal, 'abort').length).toBe(0)
  })

  test('a clock set back cannot prolong it', async () => {
    const realNow = Date.now
    const sleeping = systemClock.sleep(100)
    Date.now = () => realNow() - DAY_MS
    await sleeping
    Date.now = realNow
  })
})

describe('the shared clock of tests', () => {
  test('every process started with it tells the same time, in every way', async () => {
    const clock = createSharedClock(root)
    clock.advance(DAY_MS)
    const said = await actors.start(['now'], { env: clock.env }).ended()
    const [now = 0, constructed = 0, port = 0, explicit = 0] = said.split(' ').map(Number)
    for (const time of [now, constructed, port])
      expect(Math.abs(time - clock.now())).toBeLessThan(30_000)
    expect(explicit).toBe(5)
    const plain = await actors.start(['now']).ended()
    expect(Math.abs(Number(plain.split(' ')[0]) - Date.now())).toBeLessThan(30_000)
  })

  test('advancing it wakes a sleeper in another process', async () => {
    const clock = createSharedClock(root)
    const sleeper = actors.start(['sleep', String(DAY_MS)], { env: clock.env })
    await waitUntil('it sleeps', () => sleeper.said() === 'asleep\n')
    clock.advance(DAY_MS)
    expect(await sleeper.ended()).toBe('asleep\nawake\n')
  })
})
