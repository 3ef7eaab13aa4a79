import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { EMPTY_QUEUE } from '../../daemon/core/queue-state.ts'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'
import {
  addEntry,
  beginMeta,
  ENTRY,
  ID,
  queueFile,
  thrownBy,
  useStateDirectory,
} from '../support/store-scene.ts'

const scene = useStateDirectory()

describe('what the JSON store writes', () => {
  test('is one line of JSON with format and version, for the owner only', async () => {
    await addEntry(scene.writer())
    const text = readFileSync(scene.path('state.json'), 'utf8')
    expect(text.indexOf('\n')).toBe(text.length - 1)
    expect(JSON.parse(text)).toEqual(queueFile({ [ID]: ENTRY }))
    expect(statSync(scene.path('state.json')).mode & 0o777).toBe(0o600)
    await beginMeta(scene.writer())
    const meta: unknown = JSON.parse(readFileSync(scene.path('state_meta.json'), 'utf8'))
    expect(meta).toMatchObject({ format: 'caduceus-meta', version: 2, diagnostics: [] })
  })

  test('replaces the file instead of writing into it, and removes what killed writers left', async () => {
    await addEntry(scene.writer())
    const { ino } = statSync(scene.path('state.json'))
    scene.write('.state.json.123.abcdef.tmp', '{')
    scene.write('.state_meta.json.123.abcdef.tmp', '{')
    await scene.writer().changeQueue(() => ({ state: EMPTY_QUEUE, value: null }))
    expect(statSync(scene.path('state.json')).ino).not.toBe(ino)
    expect(scene.names()).toEqual(['.state_meta.json.123.abcdef.tmp', 'state.json', 'state.lock'])
  })

  test('waits for the state lock for ten seconds and no longer', async () => {
    const lock = tryLock(scene.path('state.lock'))
    await expect(addEntry(scene.writer())).rejects.toMatchObject({ code: 'state/lock-busy' })
    expect(scene.sleptMs()).toBe(LIMITS.stateLockMs)
    lock?.close()
    await addEntry(scene.writer())
  })

  test('is not written when the state lock could not be created', async () => {
    symlinkSync('/nowhere', scene.path('state.lock'))
    await expect(addEntry(scene.writer())).rejects.toMatchObject({ code: 'sys/io' })
    expect(existsSync(scene.path('state.json'))).toBe(false)
  })
})

/** Milliseconds. */
function durationOf(run: () => unknown): number {
  const startedAt = performance.now()
  run()
  return performance.now() - startedAt
}

describe('how large a queue may grow', () => {
  test('10,000 entries take no longer than thirty times what it takes to parse them', async () => {
    const entries = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => {
        const key = { ...ENTRY.key, number: index + 1 }
        return [`owner/repo#${index + 1}`, { ...ENTRY, key }]
      }),
    )
    await scene.writer().changeQueue(() => ({ state: { ...EMPTY_QUEUE, entries }, value: null }))
    const text = readFileSync(scene.path('state.json'), 'utf8')
    const pairs = Array.from({ length: 5 }, () => [
      durationOf(() => JSON.parse(text)),
      durationOf(() => scene.reader().readQueue()),
    ])
    expect(Object.keys(scene.reader().readQueue().entries)).toHaveLength(10_000)
    const [parsing = 0, reading = 0] = [0, 1].map((index) =>
      Math.min(...pairs.map((pair) => pair[index] ?? Infinity)),
    )
    // Side by side with what any reading takes, because a busy machine slows both down.
    expect(reading).toBeLessThan(30 * parsing)
  })
})

describe('what is read again', () => {
  test('the same bytes are checked once; what any process writes is seen at once', async () => {
    const store = scene.writer()
    await addEntry(store)
    expect(store.readQueue()).toBe(store.readQueue())
    await scene.writer().changeQueue(() => ({ state: EMPTY_QUEUE, value: null }))
    expect(store.readQueue()).toEqual(EMPTY_QUEUE)
    scene.write('state.json', '{')
    expect(thrownBy(() => store.readQueue())).toMatchObject({ code: 'state/corrupt' })
  })
})
