import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { ensureDirectory, writeFileAtomic } from '../../daemon/sys/files.ts'
import { actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'

describe('replacing a file', () => {
  const KILLS = 100
  const LANES = 3
  const LENGTH = 300_000

  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  let root: string

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
    root = mkdtempSync(join(tmpdir(), 'atomic-file-'))
  })

  afterEach(() => actors.endAll())

  afterAll(() => {
    program.remove()
    rmSync(root, { recursive: true, force: true })
  })

  test(`a reader sees one whole version while its writer is killed ${KILLS} times`, async () => {
    let kills = 0
    let cutShort = 0
    const lane = async (_: unknown, number: number): Promise<void> => {
      const path = join(root, String(number), 'file')
      while (kills < KILLS) {
        kills += 1
        rmSync(join(root, String(number)), { recursive: true, force: true })
        writeBefore(path)
        const writer = actors.start(['write-forever', path, String(LENGTH)])
        await waitUntil('it writes', () => writer.said() === 'writing\n')
        await pause(Math.random() * 15)
        expectWhole(path)
        await writer.kill()
        expectWhole(path)
        cutShort += readdirSync(join(root, String(number))).length - 1
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    // A temporary file left over shows that the kill fell into the middle of a replacement.
    expect(cutShort).toBeGreaterThan(KILLS / 10)
  }, 240_000)

  function writeBefore(path: string): void {
    ensureDirectory(dirname(path))
    writeFileAtomic(path, 'z'.repeat(LENGTH))
  }

  function expectWhole(path: string): void {
    const content = readFileSync(path, 'utf8')
    expect(content.length).toBe(LENGTH)
    expect(content === content.charAt(0).repeat(LENGTH)).toBe(true)
  }
})
