import { execFileSync } from 'node:child_process'
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import {
  createPipe,
  openPidfd,
  reap,
  signalPidfd,
  syncFilesystemOf,
} from '../../daemon/sys/native.ts'
import { bundleFixture } from '../support/bundle-fixture.ts'
import { actorsOf } from '../support/start-actor.ts'
import { waitUntil } from '../support/wait-until.ts'

const NOBODY = 65534
const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

let program: ReturnType<typeof bundleFixture>
let actors: ReturnType<typeof actorsOf>

beforeAll(() => {
  program = bundleFixture('sys-actor')
  actors = actorsOf(program.path)
})

afterEach(() => actors.endAll())
afterAll(() => program.remove())

describe('protection', () => {
  test.each([
    ['an ordinary process', 'no', 'SECRET_OF_TEST=1'],
    ['a protected one', 'yes', 'refused'],
  ])('the environment of %s, read by the same user: %#', async (_, isProtected, expected) => {
    const env = { SECRET_OF_TEST: '1' }
    const actor = actors.start(['protect', isProtected], { ...asNobody, env })
    await waitUntil('it is ready', () => actor.said() === 'ready\n')
    const reader = [
      '-c',
      'cat "/proc/$1/environ" 2>/dev/null || echo refused',
      'sh',
      String(actor.process.pid),
    ]
    expect(execFileSync('/bin/sh', reader, asNobody).toString()).toContain(expected)
  })
})

describe('orphans', () => {
  test('a subreaper gets them as its children and collects their exit codes', async () => {
    const actor = actors.start(['adopt'])
    const said = await actor.ended()
    expect(said).toBe('adopted: exit 5\nadopted: signal 9\nnone left\n')
  })

  test('a process that is no child of ours is not collected', () => {
    expect(reap(process.ppid)).toBeNull()
  })
})

describe('pidfd', () => {
  test('it signals its process, and nobody once that has ended', async () => {
    const actor = actors.start(['protect', 'no'])
    const fd = openPidfd(actor.process.pid ?? 0)
    expect(fd).not.toBeNull()
    expect(signalPidfd(fd ?? -1, 'SIGKILL')).toBe(true)
    await actor.ended()
    expect(signalPidfd(fd ?? -1, 'SIGKILL')).toBe(false)
    expect(openPidfd(actor.process.pid ?? 0)).toBeNull()
    closeSync(fd ?? -1)
  })
})

describe('a pipe', () => {
  test('what goes in comes out, and children do not inherit it', () => {
    const { readFd, writeFd } = createPipe()
    writeSync(writeFd, 'through')
    const buffer = Buffer.alloc(100)
    expect(buffer.subarray(0, readSync(readFd, buffer)).toString()).toBe('through')
    for (const fd of [readFd, writeFd]) {
      const flags = /flags:\s*(\d+)/.exec(readFileSync(`/proc/${process.pid}/fdinfo/${fd}`, 'utf8'))
      expect(Number.parseInt(flags?.[1] ?? '0', 8) & 0o2000000).not.toBe(0)
      closeSync(fd)
      expect(() => fstatSync(fd)).toThrow('EBADF')
    }
  })
})

describe('syncing', () => {
  test('a file system is synced by any path on it; an absent path is a fault', () => {
    syncFilesystemOf(tmpdir())
    syncFilesystemOf(program.path)
    expect(() => syncFilesystemOf('/absent')).toThrow('ENOENT')
  })
})

describe('loading', () => {
  test('where the native package is missing, a lock is a fault, never taken for free', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'native-'))
    const stray = bundleFixture('sys-actor', elsewhere)
    const path = join(elsewhere, 'lock')
    const probe = async (): Promise<string> => actorsOf(stray.path).start(['probe', path]).ended()
    // Without a file there is nothing to ask, so nothing is loaded.
    expect(await probe()).toBe('false\n')
    writeFileSync(path, '')
    expect(await probe()).toContain('The native interface could not be loaded: Cannot find module')
    rmSync(elsewhere, { recursive: true })
  })
})
