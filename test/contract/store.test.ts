import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { Store } from '../../daemon/core/ports.ts'
import {
  EMPTY_QUEUE,
  newEntry,
  type QueueEntry,
  type QueueState,
  withEntry,
} from '../../daemon/core/queue-state.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { type Actor, actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'

const NOW = '2026-01-01T00:00:00.000Z'
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** An entry with a value in every field. */
const FULL_ENTRY: QueueEntry = {
  ...newEntry({ owner: 'Owner', name: 'Re.po', number: 7 }, 'investigation', NOW, NOW),
  phase: 'needs_attention',
  attempts: 2,
  degraded: { count: 3, since: NOW },
  interruptions: 1,
  generation: 4,
  labeledEventId: 17_000_000_001,
  runId: '01HZZZZZZZZZZZZZZZZZZZZZZZ',
  lastRunId: '01HZZZZZZZZZZZZZZZZZZZZZZZ',
  pull: { number: 8, url: 'https://github.com/Owner/Re.po/pull/8' },
  nextAttemptAt: NOW,
  lastError: { code: 'worker/exited', message: 'The worker ended: 🤖 "\u0000\uD800', at: NOW },
  blocked: { source: 'voice', hint: 'Look at it' },
}

const WRITER_KILLS = 60

/** What every backend of the queue and its metadata must do; `name` as in test/fixtures/daemon-actor.ts. */
function describeStore(name: string, open: (stateDir: string) => Store): void {
  describe(`the ${name} store`, () => {
    let stateDir = ''
    let writer: ReturnType<typeof bundleFixture>
    let actors: ReturnType<typeof actorsOf>
    beforeAll(() => {
      writer = bundleFixture('daemon-actor')
      actors = actorsOf(writer.path)
    })
    afterAll(() => writer.remove())
    beforeEach(() => {
      stateDir = join(mkdtempSync(join(tmpdir(), 'store-')), 'state')
    })
    afterEach(async () => {
      await actors.endAll()
      rmSync(join(stateDir, '..'), { recursive: true, force: true })
    })

    const start = (...args: readonly string[]): Actor =>
      actors.start(['change-store', name, stateDir, ...args])
    const put = (entry: QueueEntry) => (queue: QueueState) => ({
      state: withEntry(queue, idOf(entry), entry),
      value: null,
    })

    test('is empty while nothing was stored, and reading creates nothing', () => {
      const store = open(stateDir)
      expect(store.readQueue()).toEqual(EMPTY_QUEUE)
      expect(store.readMeta()).toMatchObject({ installationId: '', lastOutcome: null })
      expect(store.exists()).toBe(false)
      expect(existsSync(stateDir)).toBe(false)
    })

    test('shows every reader what a change left, field by field', async () => {
      await open(stateDir).changeQueue(put(FULL_ENTRY))
      const reader = open(stateDir)
      expect(reader.exists()).toBe(true)
      expect(reader.readQueue()).toEqual({
        ...EMPTY_QUEUE,
        entries: { 'owner/re.po#7': FULL_ENTRY },
      })
    })

    test('keeps queue and metadata apart', async () => {
      const store = open(stateDir)
      await store.changeMeta((meta) => ({
        state: { ...meta, lastOutcome: 'idle304', lastHttpStatus: 304 },
        value: null,
      }))
      expect(store.readQueue()).toEqual(EMPTY_QUEUE)
      await store.changeQueue(put(entryOf(1)))
      expect(store.readMeta()).toMatchObject({ lastOutcome: 'idle304', lastHttpStatus: 304 })
    })

    test('gives the caller what the change made of it', async () => {
      const value = await open(stateDir).changeQueue((queue) => ({
        state: queue,
        value: Object.keys(queue.entries).length,
      }))
      expect(value).toBe(0)
    })

    test('stores an error text of a megabyte', async () => {
      const message = 'x'.repeat(1_000_000)
      const entry = { ...entryOf(1), lastError: { code: 'git/failed', message, at: NOW } }
      await open(stateDir).changeQueue(put(entry))
      expect(open(stateDir).readQueue().entries['owner/repo#1']?.lastError?.message).toBe(message)
    })

    test('writes nothing when a change returns the state it was given', async () => {
      const store = open(stateDir)
      await store.changeQueue(put(entryOf(1)))
      await store.changeMeta((meta) => ({ state: meta, value: null }))
      const before = filesIn(stateDir)
      await store.changeQueue((queue) => ({ state: queue, value: null }))
      await store.changeMeta((meta) => ({ state: meta, value: null }))
      expect(filesIn(stateDir)).toEqual(before)
    })

    test('touches nothing when it is read', async () => {
      const store = open(stateDir)
      await store.changeQueue(put(entryOf(1)))
      const before = filesIn(stateDir)
      store.readQueue()
      store.readMeta()
      store.exists()
      expect(filesIn(stateDir)).toEqual(before)
    })

    test('is as before after a change that throws, and takes the next one', async () => {
      const store = open(stateDir)
      await store.changeQueue(put(entryOf(1)))
      const before = store.readQueue()
      await expect(
        store.changeQueue(() => {
          throw new RangeError('no')
        }),
      ).rejects.toThrow(RangeError)
      expect(store.readQueue()).toEqual(before)
      await store.changeQueue(put(entryOf(2)))
      expect(Object.keys(store.readQueue().entries)).toHaveLength(2)
    })

    test('refuses what it could not read back, and keeps the old state', async () => {
      const store = open(stateDir)
      await store.changeQueue(put(entryOf(1)))
      const before = store.readQueue()
      const wrong: readonly QueueState[] = [
        { ...EMPTY_QUEUE, entries: { 'owner/repo#2': entryOf(1) } },
        { ...EMPTY_QUEUE, entries: { 'owner/repo#1': { ...entryOf(1), attempts: Number.NaN } } },
        {
          ...EMPTY_QUEUE,
          entries: { 'owner/repo#1': { ...entryOf(1), nextAttemptAt: '+275760-09-13T00:00:00Z' } },
        },
        { ...EMPTY_QUEUE, entries: { 'owner/repo#1': { ...entryOf(1), runId: '../../x' } } },
      ]
      for (const state of wrong) {
        await expect(store.changeQueue(() => ({ state, value: null }))).rejects.toMatchObject({
          code: 'internal/unexpected',
        })
      }
      expect(store.readQueue()).toEqual(before)
    })

    test('decides on what another writer left meanwhile', async () => {
      const [one, other] = [open(stateDir), open(stateDir)]
      one.readQueue()
      await other.changeQueue(put(entryOf(1)))
      await one.changeQueue(put(entryOf(2)))
      expect(Object.keys(other.readQueue().entries)).toEqual(['owner/repo#1', 'owner/repo#2'])
    })

    test('loses none of many changes of one process', async () => {
      const store = open(stateDir)
      const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
      await Promise.all(numbers.map((number) => store.changeQueue(put(entryOf(number)))))
      expect(Object.keys(store.readQueue().entries)).toHaveLength(20)
    })

    test('loses none of many changes of several processes', async () => {
      const writers = [1, 101, 201, 301].map((from) => start('add', String(from), '25'))
      await Promise.all(writers.map((each) => each.ended()))
      expect(writers.map((each) => each.process.exitCode)).toEqual([0, 0, 0, 0])
      expect(Object.keys(open(stateDir).readQueue().entries)).toHaveLength(100)
    })

    test('gives several first users one installation id, and keeps it', async () => {
      const writers = Array.from({ length: 6 }, () => start('identify'))
      const answers = await Promise.all(writers.map((each) => each.ended()))
      const id = answers[0]?.trim()
      expect(id).toMatch(UUID_V4)
      expect(new Set(answers).size).toBe(1)
      expect(open(stateDir).readMeta().installationId).toBe(id)
    })

    test(`is whole after each of ${WRITER_KILLS} writers killed at any moment`, async () => {
      const store = open(stateDir)
      await store.changeQueue(() => ({
        state: { ...EMPTY_QUEUE, entries: Object.fromEntries(manyEntries(200)) },
        value: null,
      }))
      let stored = 1
      for (let kill = 0; kill < WRITER_KILLS; kill += 1) {
        // The moments are spread over several whole cycles of a writer.
        stored = Math.max(stored, await killAfter(start('turn'), 1 + (kill % 4), (kill * 7) % 23))
        const generations = Object.values(store.readQueue().entries).map(
          (entry) => entry.generation,
        )
        expect(generations).toHaveLength(200)
        expect(new Set(generations).size).toBe(1)
        expect(generations[0]).toBeGreaterThanOrEqual(stored)
      }
      expect(stored).toBeGreaterThan(WRITER_KILLS)
      await store.changeQueue(put(entryOf(1)))
    }, 120_000)
  })
}

function entryOf(number: number): QueueEntry {
  return newEntry({ owner: 'Owner', name: 'Repo', number }, 'code', NOW, NOW)
}

function idOf({ key }: QueueEntry): string {
  return `${key.owner}/${key.name}#${key.number}`.toLowerCase()
}

function manyEntries(count: number): readonly (readonly [string, QueueEntry])[] {
  return Array.from({ length: count }, (_, index) => {
    const entry = entryOf(index + 1)
    return [idOf(entry), entry]
  })
}

/** Everything about the files that a write would change; lock files may come and go. */
function filesIn(folder: string): unknown {
  return readdirSync(folder)
    .filter((name) => !name.endsWith('.lock'))
    .map((name) => {
      const { ino, mtimeNs, ctimeNs, size } = statSync(join(folder, name), { bigint: true })
      return { name, ino, mtimeNs, ctimeNs, size }
    })
}

/** Kills a writer some milliseconds after it told of that many changes; gives the last one it told. */
async function killAfter(writer: Actor, changes: number, ms: number): Promise<number> {
  const told = (): readonly string[] => writer.said().split('\n').slice(0, -1)
  await waitUntil('changes of the writer', () => told().length >= changes)
  await pause(ms)
  await writer.kill()
  return Number(told().at(-1))
}

describeStore('json', (stateDir) => openJsonStore({ clock: systemClock }, stateDir))
