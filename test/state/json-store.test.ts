import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { LIMITS } from '../../daemon/core/limits.ts'
import type { Clock, Store } from '../../daemon/core/ports.ts'
import { EMPTY_QUEUE, newEntry } from '../../daemon/core/queue-state.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { tryLock } from '../../daemon/sys/kernel-lock.ts'

const NOW = '2026-01-01T00:00:00.000Z'

const ENTRY = newEntry({ owner: 'Owner', name: 'Repo', number: 1 }, 'code', NOW, NOW)
const ID = 'owner/repo#1'

/** The content of `state.json` with these entries. */
const queueFile = (entries: unknown): object => ({
  format: 'caduceus-queue',
  version: 2,
  entries,
  circuits: {},
})

/** Puts one entry in, whatever was there. */
const addEntry = (store: Store): Promise<unknown> =>
  store.changeQueue(() => ({ state: { ...EMPTY_QUEUE, entries: { [ID]: ENTRY } }, value: null }))

const beginMeta = (store: Store): Promise<unknown> =>
  store.changeMeta((meta) => ({ state: meta, value: null }))

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return null
}

/** A state directory of its own for each test of the file. */
function useStateDirectory() {
  let stateDir = ''
  let sleptMs = 0
  const clock: Clock = {
    now: () => Date.parse(NOW),
    sleep: async (ms) => {
      sleptMs += ms
    },
  }
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), 'json-store-'))
    sleptMs = 0
  })
  afterEach(() => rmSync(stateDir, { recursive: true, force: true }))

  const path = (name: string): string => join(stateDir, name)
  return {
    path,
    /** Milliseconds the store wanted to wait; it never really does. */
    sleptMs: () => sleptMs,
    /** As `status` opens it. */
    reader: (): Store => openJsonStore({ clock }, stateDir),
    /** As a tick opens it. */
    writer: (): Store => openJsonStore({ clock, archiveCorrupt: true }, stateDir),
    write: (name: string, content: unknown): void =>
      writeFileSync(
        path(name),
        typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content),
      ),
    names: (): readonly string[] => readdirSync(stateDir).sort(),
    copies: (): readonly string[] =>
      readdirSync(stateDir).filter((name) => name.includes('.corrupt-')),
  }
}

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
  test('the same bytes are judged once; what anybody writes is seen at once', async () => {
    const store = scene.writer()
    await addEntry(store)
    expect(store.readQueue()).toBe(store.readQueue())
    await scene.writer().changeQueue(() => ({ state: EMPTY_QUEUE, value: null }))
    expect(store.readQueue()).toEqual(EMPTY_QUEUE)
    scene.write('state.json', '{')
    expect(thrownBy(() => store.readQueue())).toMatchObject({ code: 'state/corrupt' })
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
