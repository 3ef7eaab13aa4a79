import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { systemClock } from '../../daemon/sys/clock.ts'
import { inheritLock, isLocked, tryLock, waitForLock } from '../../daemon/sys/kernel-lock.ts'
import { actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'

describe('a kernel lock', () => {
  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  let root: string
  let path: string
  let locks = 0

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
    root = mkdtempSync(join(tmpdir(), 'kernel-lock-'))
  })

  beforeEach(() => {
    locks += 1
    path = join(root, `${locks}.claim`)
  })

  afterEach(() => actors.endAll())

  afterAll(() => {
    program.remove()
    rmSync(root, { recursive: true, force: true })
  })

  const killPid = (pid: number): void => void process.kill(pid, 'SIGKILL')

  describe('one holder', () => {
    test('a lock keeps every other process and every other descriptor out until it is closed', async () => {
      const lock = tryLock(path)
      expect(lock?.isCurrent()).toBe(true)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(tryLock(path)).toBeNull()
      expect(isLocked(path)).toBe(true)
      const other = actors.start(['hold-lock', path])
      await waitUntil('the other process answers', () => other.said() === 'busy\n')
      await other.kill()
      lock?.close()
      lock?.close()
      expect(lock?.isCurrent()).toBe(false)
      expect(isLocked(path)).toBe(false)
    })

    test('a killed holder frees its lock', async () => {
      const holder = actors.start(['hold-lock', path])
      await waitUntil('the other process holds it', () => holder.said() === 'held\n')
      expect(tryLock(path)).toBeNull()
      expect(isLocked(path)).toBe(true)
      await holder.kill()
      const lock = tryLock(path)
      expect(lock).not.toBeNull()
      lock?.close()
    })

    test('a probe creates no file and keeps nobody out', () => {
      expect(isLocked(path)).toBe(false)
      expect(existsSync(path)).toBe(false)
      writeFileSync(path, '')
      expect(isLocked(path)).toBe(false)
      const lock = tryLock(path)
      expect(lock).not.toBeNull()
      lock?.close()
    })

    test('probes by many others at the same time never make a free lock look taken', async () => {
      const stop = join(root, 'stop')
      writeFileSync(path, '')
      const probers = [1, 2].map(() => actors.start(['probe-until', path, stop]))
      await waitUntil('both probe', () => probers.every((prober) => prober.said() === 'probing\n'))
      for (let turn = 0; turn < 2000; turn += 1) {
        const lock = tryLock(path)
        expect(lock).not.toBeNull()
        lock?.close()
      }
      writeFileSync(stop, '')
      await Promise.all(probers.map((prober) => prober.ended()))
    })

    test('waiting ends when the lock is free, or with a fault when the time is over', async () => {
      const first = await waitForLock(systemClock, path, 0)
      await expect(waitForLock(systemClock, path, 60)).rejects.toMatchObject({
        code: 'state/lock-busy',
        details: { path, seconds: 0.06 },
      })
      const waiting = waitForLock(systemClock, path, 10_000)
      setTimeout(() => first.close(), 30)
      const second = await waiting
      expect(second.isCurrent()).toBe(true)
      second.close()
    })

    test('a note replaces the one before and needs the lock', () => {
      const lock = tryLock(path)
      lock?.writeNote('a long first note')
      lock?.writeNote('second')
      expect(readFileSync(path, 'utf8')).toBe('second')
      lock?.close()
      expect(() => lock?.writeNote('third')).toThrow('given up')
    })

    test.each([
      ['a symbolic link', (at: string) => symlinkSync('/dev/null', at)],
      ['not a regular file', (at: string) => mkdirSync(at)],
      ['folder is missing', null],
    ] as const)('a path that is %s is refused', (reason, make) => {
      make?.(path)
      const target = make === null ? join(path, 'below') : path
      expect(() => tryLock(target)).toThrow(expect.objectContaining({ code: 'sys/io' }))
      if (reason !== 'not a regular file') expect(() => tryLock(target)).toThrow(reason)
    })
  })

  describe('the file behind the lock', () => {
    test('a replaced file makes the lock stale, and the new one can be locked', () => {
      const stale = tryLock(path)
      writeFileSync(`${path}.new`, '')
      renameSync(`${path}.new`, path)
      expect(stale?.isCurrent()).toBe(false)
      expect(isLocked(path)).toBe(false)
      const fresh = tryLock(path)
      expect(fresh?.isCurrent()).toBe(true)
      stale?.remove()
      expect(fresh?.isCurrent()).toBe(true)
      fresh?.close()
    })

    test('removal takes the file and the lock away together', () => {
      const lock = tryLock(path)
      lock?.remove()
      expect(existsSync(path)).toBe(false)
      expect(lock?.isCurrent()).toBe(false)
      expect(isLocked(path)).toBe(false)
    })

    test('holders that remove and retake it at once in many processes never share it', async () => {
      const counter = join(root, 'counter')
      writeFileSync(counter, '')
      const takers = [1, 2, 3, 4].map(() => actors.start(['retake', path, counter, String(150)]))
      const said = await Promise.all(takers.map((actor) => actor.ended()))
      expect(said).toEqual(['kept\n', 'kept\n', 'kept\n', 'kept\n'])
    })
  })

  describe('hand-over', () => {
    test('a lock given to a child outlives its giver and ends with the child', async () => {
      const giver = actors.start(['hand-over', path, 'sleep', '60'])
      const pid = Number(await giver.ended())
      expect(isLocked(path)).toBe(true)
      expect(tryLock(path)).toBeNull()
      killPid(pid)
      await waitUntil('the lock is free', () => !isLocked(path))
    })

    test('a received lock is not passed on to children that are not given it', async () => {
      const note = join(root, 'note')
      const argv = [process.execPath, program.path, 'hold-inherited', path, note]
      const giver = actors.start(['hand-over', path, ...argv])
      const receiver = Number(await giver.ended())
      await waitUntil('the receiver has started a child', () => existsSync(note))
      const [verdict, grandchild] = readFileSync(note, 'utf8').split(' ')
      expect(verdict).toBe('inherited')
      expect(isLocked(path)).toBe(true)
      killPid(receiver)
      await waitUntil('the lock is free', () => !isLocked(path))
      killPid(Number(grandchild))
    })

    test('a descriptor that is closed, of another file, or of a removed one is not accepted', () => {
      const other = openSync(`${path}.other`, 'a+')
      writeFileSync(path, '')
      expect(inheritLock(other, path)).toBeNull()
      expect(inheritLock(9999, path)).toBeNull()
      const same = openSync(path, 'a+')
      unlinkSync(path)
      expect(inheritLock(same, path)).toBeNull()
      closeSync(other)
      closeSync(same)
    })

    test('a descriptor whose lock somebody else holds is not accepted and stays open', () => {
      const lock = tryLock(path)
      const stranger = openSync(path, 'a+')
      expect(inheritLock(stranger, path)).toBeNull()
      expect(fstatSync(stranger).isFile()).toBe(true)
      const again = lock === null ? null : inheritLock(lock.fd, path)
      expect(again?.isCurrent()).toBe(true)
      closeSync(stranger)
      lock?.close()
    })
  })
})
