import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync } from 'node:fs'
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
    expect(scene.reader().readQueue()).toEqual(EMPTY_QUEUE)
    await beginMeta(scene.writer())
  })

  test('an empty database file holds nothing', () => {
    scene.write('state.db', '')
    expect(scene.reader().readQueue()).toEqual(EMPTY_QUEUE)
  })
})

/** Permissions mean nothing to root. */
const asAnotherUser = <T>(run: () => T): T => {
  if (process.geteuid?.() !== 0) return run()
  process.seteuid?.(65_534)
  try {
    return run()
  } finally {
    process.seteuid?.(0)
  }
}

describe('what counts as corrupt', () => {
  const good = JSON.stringify(queueFile({ [ID]: ENTRY }))
  const lastError = { code: 'git/failed', message: '\u00FF', at: ENTRY.queuedAt }
  const notUtf8 = Buffer.from(
    JSON.stringify(queueFile({ [ID]: { ...ENTRY, lastError } })),
    'latin1',
  )
  const cases: readonly (readonly [string, unknown])[] = [
    ['an empty file', ''],
    ['half a file', good.slice(0, good.length / 2)],
    ['text after the end', `${good}}`],
    ['a byte order mark', `\uFEFF${good}`],
    ['bytes that are not UTF-8', notUtf8],
    ['something else than an object', '[]'],
    ['null', 'null'],
    ['no format', { entries: {} }],
    ['another format', { ...queueFile({}), format: 'caduceus-meta' }],
    ['a version that never was', { ...queueFile({}), version: 1 }],
    ['a version that is no number', { ...queueFile({}), version: '2' }],
    ['an unknown field', { ...queueFile({}), more: 1 }],
    ['an unknown field of an entry', queueFile({ [ID]: { ...ENTRY, more: 1 } })],
    ['a missing field', queueFile({ [ID]: { ...ENTRY, phase: undefined } })],
    ['an unknown phase', queueFile({ [ID]: { ...ENTRY, phase: 'lost' } })],
    ['a wrong type', queueFile({ [ID]: { ...ENTRY, attempts: '1' } })],
    ['a fraction', queueFile({ [ID]: { ...ENTRY, attempts: 1.5 } })],
    ['a negative count', queueFile({ [ID]: { ...ENTRY, attempts: -1 } })],
    [
      'a time that is none',
      queueFile({ [ID]: { ...ENTRY, queuedAt: '2026-13-01T00:00:00.000Z' } }),
    ],
    [
      'another time zone',
      queueFile({ [ID]: { ...ENTRY, queuedAt: '2026-01-01T00:00:00.000+01:00' } }),
    ],
    ['a run id that is a path', queueFile({ [ID]: { ...ENTRY, runId: '../../escape' } })],
    ['an entry under another key', queueFile({ 'owner/repo#2': ENTRY })],
    ['an entry under a key with capitals', queueFile({ 'Owner/Repo#1': ENTRY })],
    [
      'a key no issue can have',
      queueFile({ 'a/..#1': { ...ENTRY, key: { owner: 'a', name: '..', number: 1 } } }),
    ],
    ['number 0', queueFile({ 'owner/repo#0': { ...ENTRY, key: { ...ENTRY.key, number: 0 } } })],
    ['an entry named __proto__', good.replace(`"${ID}":`, '"__proto__":')],
  ]
  for (const [name, content] of cases) {
    test(`${name}: refused each time, kept once, the file as it was`, async () => {
      scene.write('state.json', content)
      const bytes = readFileSync(scene.path('state.json'))
      const code = 'state/corrupt'
      expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({ code })
      expect(scene.names()).toEqual(['state.json'])
      await expect(addEntry(scene.writer())).rejects.toMatchObject({ code })
      expect(thrownBy(() => scene.writer().readQueue())).toMatchObject({ code })
      await expect(addEntry(scene.reader())).rejects.toMatchObject({ code })
      expect(scene.copies()).toEqual(['state.json.corrupt-20260101T000000000Z'])
      expect(readFileSync(scene.path(scene.copies()[0] ?? ''))).toEqual(bytes)
      expect(readFileSync(scene.path('state.json'))).toEqual(bytes)
    })
  }

  test('a reader that may archive keeps the bytes; one that may not names the copy', () => {
    scene.write('state.json', '{')
    expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({ details: { archive: null } })
    const archive = `${scene.path('state.json')}.corrupt-20260101T000000000Z`
    expect(thrownBy(() => scene.writer().readQueue())).toMatchObject({ details: { archive } })
    expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({
      details: { archive },
      message: expect.stringContaining(archive),
    })
  })

  test('other corrupt bytes are kept beside the first', async () => {
    for (const content of ['{', '{{', '{', '{{{']) {
      scene.write('state.json', content)
      await expect(addEntry(scene.writer())).rejects.toMatchObject({ code: 'state/corrupt' })
    }
    expect(scene.copies()).toHaveLength(3)
  })

  test('a file that is too large is kept as it is, once', async () => {
    const metaFile = scene.path('state_meta.json')
    scene.write('state_meta.json', '{')
    truncateSync(metaFile, LIMITS.metaBytes + 1)
    const digest = (path: string): string =>
      createHash('sha256').update(readFileSync(path)).digest('hex')
    const before = digest(metaFile)
    for (let times = 0; times < 2; times += 1) {
      await expect(beginMeta(scene.writer())).rejects.toMatchObject({ code: 'state/corrupt' })
    }
    expect(scene.copies()).toHaveLength(1)
    expect(digest(scene.path(scene.copies()[0] ?? ''))).toBe(before)
    expect(digest(metaFile)).toBe(before)
  })

  test('corrupt metadata does not hide the queue', async () => {
    await addEntry(scene.writer())
    scene.write('state_meta.json', 'x')
    expect(scene.reader().readQueue()).toEqual({ ...EMPTY_QUEUE, entries: { [ID]: ENTRY } })
    expect(thrownBy(() => scene.reader().readMeta())).toMatchObject({ code: 'state/corrupt' })
  })

  test('the fault says where and what is wrong', () => {
    scene.write('state.json', queueFile({ [ID]: { ...ENTRY, attempts: '1' } }))
    expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({
      message: expect.stringMatching(
        /state\.json .*entries\.owner\/repo#1\.attempts .*whole number/,
      ),
      next: expect.stringContaining('backup'),
    })
  })

  test('a name that is taken is passed over', async () => {
    scene.write('state.json', '{')
    mkdirSync(`${scene.path('state.json')}.corrupt-20260101T000000000Z`)
    await expect(addEntry(scene.writer())).rejects.toMatchObject({
      details: { archive: `${scene.path('state.json')}.corrupt-20260101T000000001Z` },
    })
  })

  test('a reader does not wait for the lock to keep them', () => {
    scene.write('state.json', '{')
    const lock = tryLock(scene.path('state.lock'))
    expect(thrownBy(() => scene.writer().readQueue())).toMatchObject({ details: { archive: null } })
    lock?.close()
    expect(scene.copies()).toEqual([])
  })

  test('that they could not be kept is told beside the corruption', () => {
    scene.write('state.json', '{')
    scene.write('state.lock', '')
    chmodSync(scene.path('state.lock'), 0o666)
    chmodSync(scene.path('.'), 0o555)
    const thrown = asAnotherUser(() => thrownBy(() => scene.writer().readQueue()))
    chmodSync(scene.path('.'), 0o700)
    expect(thrown).toMatchObject({
      code: 'state/corrupt',
      message: expect.stringMatching(/is not valid JSON\. Its bytes could not be copied: .*EACCES/),
    })
  })

  test('a link or folder in its place is an input error, not a state', () => {
    symlinkSync('/nowhere', scene.path('state.json'))
    expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({ code: 'sys/io' })
    rmSync(scene.path('state.json'))
    mkdirSync(scene.path('state.json'))
    expect(thrownBy(() => scene.reader().readQueue())).toMatchObject({ code: 'sys/io' })
    chmodSync(scene.path('state.json'), 0o700)
  })
})
