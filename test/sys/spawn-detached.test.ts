import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { cwdOf, identifyProcess } from '../../daemon/sys/process-identity.ts'
import { spawnDetached } from '../../daemon/sys/spawn-detached.ts'
import { killSession } from '../../daemon/sys/terminate.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'
import { actorsOf } from '../support/start-actor.ts'
import { waitUntil } from '../support/wait-until.ts'

const env = { PATH: '/usr/bin:/bin' }

let program: ReturnType<typeof bundleFixture>
let actors: ReturnType<typeof actorsOf>
let root: string
let output: string

beforeAll(() => {
  program = bundleFixture('sys-actor')
  actors = actorsOf(program.path)
})

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'spawn-detached-'))
  output = join(root, 'output')
})

afterEach(async () => {
  await actors.endAll()
  rmSync(root, { recursive: true, force: true })
})

afterAll(() => program.remove())

describe('a detached program', () => {
  test('leads its own session in the root folder, with the descriptors it was given', async () => {
    const fd = openSync(output, 'a')
    const script = 'echo out; echo err >&2; echo three >&3; echo "$PATH"; pwd; sleep 60'
    const { pid } = await spawnDetached({
      argv: ['/bin/sh', '-c', script],
      env,
      stdio: ['ignore', fd, fd, fd],
    })
    closeSync(fd)
    const identity = identifyProcess(pid)
    expect(identity?.session).toBe(pid)
    expect(cwdOf(pid)).toBe('/')
    await waitUntil('it has written', () => readFileSync(output, 'utf8').endsWith('\n/\n'))
    const lines = readFileSync(output, 'utf8').trimEnd().split('\n')
    expect(lines).toEqual(['out', 'err', 'three', '/usr/bin:/bin', '/'])
    if (identity !== null) killSession(identity)
  })

  test('descriptors nobody named are closed to it, so it never depends on us', async () => {
    const script = `ls -l /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2`
    await spawnDetached({
      argv: ['/bin/sh', '-c', `x=$(${script}); echo "$x" > ${output}`],
      env,
      stdio: [],
    })
    const lines = await waitUntil('it has written', () => {
      const written = exists(output) ? readFileSync(output, 'utf8').trimEnd().split('\n') : []
      return written.length === 3 && written
    })
    expect(lines.map((line) => line.split(' -> ')[1])).toEqual(Array(3).fill('/dev/null'))
  })

  test('a failed start is a fault', async () => {
    const start = spawnDetached({ argv: ['/absent'], env, stdio: ['ignore'] })
    await expect(start).rejects.toMatchObject({ code: 'sys/spawn-failed' })
  })
})

describe('its input', () => {
  test('arrives whole although the sender has long ended', async () => {
    const text = `${'x'.repeat(60_000)} and an end`
    const go = join(root, 'go')
    const script = `until [ -e ${go} ]; do sleep 0.02; done; cat <&3 > ${output}.part; mv ${output}.part ${output}`
    const late = ['/bin/sh', '-c', script]
    const sender = actors.start(['deliver', text, ...late])
    expect(await sender.ended()).toBe('delivered\n')
    expect(exists(output)).toBe(false)
    writeFileSync(go, '')
    await waitUntil('it has been read', () => exists(output))
    expect(readFileSync(output, 'utf8')).toBe(text)
  })

  test('larger ones wait for the reader', async () => {
    const text = 'y'.repeat(3 * 1024 ** 2)
    const argv = ['/bin/sh', '-c', `cat <&5 > ${output}.part; mv ${output}.part ${output}`] as const
    await spawnDetached({ argv, env, stdio: ['ignore'], input: { fd: 5, text } })
    await waitUntil('it has been read', () => exists(output))
    expect(readFileSync(output, 'utf8') === text).toBe(true)
  })

  test('a program that ends without reading is no fault; one that never reads is ended', async () => {
    const text = 'z'.repeat(3 * 1024 ** 2)
    const start = (argv: readonly [string, ...string[]]): ReturnType<typeof spawnDetached> =>
      spawnDetached({ argv, env, stdio: [], input: { fd: 3, text } })
    expect((await start(['/bin/true'])).pid).toBeGreaterThan(1)
    await expect(start(['/bin/sleep', '60'])).rejects.toMatchObject({
      code: 'sys/process-timeout',
      details: { seconds: 5 },
    })
  })
})

function exists(path: string): boolean {
  try {
    readFileSync(path)
    return true
  } catch {
    return false
  }
}
