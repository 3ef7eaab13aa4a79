import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'
import {
  addEntry,
  beginMeta,
  ENTRY,
  ID,
  queueFile,
  thrownBy,
  useStateDirectory,
} from './store-scene.ts'

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
    await scene.writer().changeQueue(() => ({ state: { entries: {} }, value: null }))
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

describe('which files of other versions are refused', () => {
  const cases: readonly (readonly [string, string, unknown, string])[] = [
    ['the original’s queue', 'state.json', { version: 1, entries: {} }, 'state/format-of-original'],
    ['the queue before it', 'state.json', { entries: [] }, 'state/format-of-original'],
    ['a newer queue', 'state.json', { ...queueFile({}), version: 3, new: 1 }, 'state/format-newer'],
    ['an SQLite database', 'state.db', 'SQLite format 3\u0000', 'state/stale-schema'],
  ]
  for (const [name, path, content, code] of cases) {
    test(`${name} is never corrupt, never empty, never changed`, async () => {
      scene.write(path, content)
      const bytes = readFileSync(scene.path(path))
      expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({ code })
      expect(thrownBy(() => scene.writer().readQueue())).toMatchObject({ code })
      await expect(addEntry(scene.writer())).rejects.toMatchObject({ code })
      expect(scene.reader().exists()).toBe(true)
      expect(readFileSync(scene.path(path))).toEqual(bytes)
      expect(scene.names().filter((each) => each !== 'state.lock')).toEqual([path])
    })
  }

  test('metadata of the original and of a newer version likewise', async () => {
    for (const [content, code] of [
      [{ version: 1, last_outcome: 'idle304' }, 'state/format-of-original'],
      [{ format: 'caduceus-meta', version: 9 }, 'state/format-newer'],
    ] as const) {
      scene.write('state_meta.json', content)
      expect(thrownBy(() => scene.reader().readMeta())).toMatchObject({ code })
      await expect(beginMeta(scene.writer())).rejects.toMatchObject({ code })
    }
  })

  test('a database stops the metadata too, but not a state of ours beside it', async () => {
    scene.write('state.db', 'SQLite format 3\u0000')
    expect(thrownBy(() => scene.reader().readMeta())).toMatchObject({ code: 'state/stale-schema' })
    scene.write('state.json', queueFile({}))
    expect(scene.reader().readQueue()).toEqual({ entries: {} })
    await beginMeta(scene.writer())
  })

  test('an empty database file holds nothing', () => {
    scene.write('state.db', '')
    expect(scene.reader().readQueue()).toEqual({ entries: {} })
  })
})

describe('how large a queue may grow', () => {
  test('10,000 entries are read in a fraction of a second', async () => {
    const entries = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => {
        const key = { ...ENTRY.key, number: index + 1 }
        return [`owner/repo#${index + 1}`, { ...ENTRY, key }]
      }),
    )
    await scene.writer().changeQueue(() => ({ state: { entries }, value: null }))
    const times = Array.from({ length: 5 }, () => {
      const startedAt = performance.now()
      expect(Object.keys(scene.reader().readQueue().entries)).toHaveLength(10_000)
      return performance.now() - startedAt
    })
    // Far above what it takes (about 50 ms), far below what a validator compiled at run time takes.
    expect(Math.min(...times)).toBeLessThan(250)
  })
})
