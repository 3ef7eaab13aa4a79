import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { bundleFixture } from '../support/bundle-fixture.ts'
import { actorsOf } from '../support/start-actor.ts'

const PRELOAD = new URL('../support/crash-at-effect.mjs', import.meta.url).href

let program: ReturnType<typeof bundleFixture>
let actors: ReturnType<typeof actorsOf>
let root: string

beforeAll(() => {
  program = bundleFixture('sys-actor')
  actors = actorsOf(program.path)
  root = mkdtempSync(join(tmpdir(), 'effects-'))
})

afterEach(() => actors.endAll())

afterAll(() => {
  program.remove()
  rmSync(root, { recursive: true, force: true })
})

async function run(env: Record<string, string>): Promise<{ said: string; signal: string | null }> {
  const options = { env: { NODE_OPTIONS: `--import=${PRELOAD}`, ...env } }
  const actor = actors.start(['count-effects'], options)
  const said = await actor.ended()
  return { said, signal: actor.process.signalCode }
}

describe('a process at its n-th effect', () => {
  test.each([
    ['2', 'first\n'],
    ['2:after', 'first\nsecond\n'],
    ['1:before', ''],
  ])('with crash at %s it had done so much', async (at, said) => {
    expect(await run({ TEST_CRASH_AT: at })).toEqual({ said, signal: 'SIGKILL' })
  })

  test('other processes, and later numbers, are left alone', async () => {
    const whole = { said: 'first\nsecond\nthird\n', signal: null }
    expect(await run({ TEST_CRASH_AT: '4' })).toEqual(whole)
    expect(await run({ TEST_CRASH_AT: '1', TEST_CRASH_PROCESS: 'another' })).toEqual(whole)
    const matching = { TEST_CRASH_AT: '1', TEST_CRASH_PROCESS: 'sys-actor.* count-' }
    expect(await run(matching)).toMatchObject({ signal: 'SIGKILL' })
  })

  test('every effect is logged where a file is named', async () => {
    const log = join(root, 'log')
    await run({ TEST_EFFECT_LOG: log, TEST_CRASH_AT: '2:after' })
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/^\d+ /, ''))).toEqual([
      '1 actor.first before',
      '1 actor.first after',
      '2 actor.second before',
      '2 actor.second after',
    ])
  })
})
