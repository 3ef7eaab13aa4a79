import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from '@jest/globals'
import type { Clock, Store } from '../../daemon/core/ports.ts'
import { EMPTY_QUEUE, newEntry } from '../../daemon/core/queue-state.ts'
import { openJsonStore } from '../../daemon/state/json-store.ts'

export const NOW = '2026-01-01T00:00:00.000Z'

export const ENTRY = newEntry({ owner: 'Owner', name: 'Repo', number: 1 }, 'code', NOW, NOW)
export const ID = 'owner/repo#1'

/** The content of `state.json` with these entries. */
export const queueFile = (entries: unknown): object => ({
  format: 'caduceus-queue',
  version: 2,
  entries,
  circuits: {},
})

/** Puts one entry in, whatever was there. */
export const addEntry = (store: Store): Promise<unknown> =>
  store.changeQueue(() => ({ state: { ...EMPTY_QUEUE, entries: { [ID]: ENTRY } }, value: null }))

export const beginMeta = (store: Store): Promise<unknown> =>
  store.changeMeta((meta) => ({ state: meta, value: null }))

export function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return null
}

/** A state directory of its own for each test of a file. */
export function useStateDirectory() {
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
    /** Milliseconds that the store was told to wait; it never really does. */
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
