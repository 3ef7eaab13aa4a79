import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
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
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { Claims, Clock } from '../../daemon/core/ports.ts'
import { openClaims } from '../../daemon/state/claims.ts'
import { layoutOf } from '../../daemon/state/layout.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { readFileBounded } from '../../daemon/sys/files.ts'
import { inheritLock, isLocked, tryLock, waitForLock } from '../../daemon/sys/kernel-lock.ts'
import {
  identifyProcess,
  isAlive,
  listProcesses,
  type ProcessIdentity,
} from '../../daemon/sys/process-identity.ts'
import { killIdentity } from '../../daemon/sys/terminate.ts'
import { actorsOf, bundleFixture, commandLineOf, waitUntil } from '../support/processes.ts'

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

describe('starting a run (P§2)', () => {
  const KILLS = 200
  const LANES = 4

  let program: ReturnType<typeof bundleFixture>
  let root: string
  let runs = 0

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    root = mkdtempSync(join(tmpdir(), 'claim-hand-over-'))
  })

  afterAll(() => {
    for (let left = runnerOf(root); left !== null; left = runnerOf(root))
      killIdentity(left, 'SIGKILL')
    program.remove()
    rmSync(root, { recursive: true, force: true })
  })

  function newFolder(): string {
    runs += 1
    const folder = join(root, `run-${runs}-`)
    mkdirSync(folder)
    return folder
  }

  function startSpawner(folder: string, lastStep = 0): ChildProcess {
    return spawn(process.execPath, [program.path, 'spawn-run', folder, String(lastStep)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'] },
    })
  }

  async function begun(spawner: ChildProcess): Promise<void> {
    const ended = once(spawner, 'exit').then(([code, signal]) => `ended early: ${code} ${signal}`)
    const said = once(spawner.stdout ?? spawner, 'data').then(String)
    expect(await Promise.race([said, ended])).toBe('ready\n')
  }

  const isHeld = (folder: string): boolean => isLocked(join(folder, 'claim'))

  const journalOf = (folder: string): string =>
    readFileBounded(join(folder, 'journal'), 100)?.toString() ?? 'absent'

  /** A run's own process, told by its command line; the spawner's carries another role. */
  function runnerOf(folder: string): ProcessIdentity | null {
    const runner = listProcesses().find(({ pid }) => {
      const argv = commandLineOf(pid)
      return argv.includes('run') && argv.some((word) => word.startsWith(folder))
    })
    return runner === undefined ? null : identifyProcess(runner.pid)
  }

  /** A runner that lived before and after the claim was seen free was not owned in between. */
  function seenUnowned(folder: string): boolean {
    if (isHeld(folder) || journalOf(folder) === 'absent') return false
    const runner = runnerOf(folder)
    return runner !== null && !isHeld(folder) && isAlive(runner)
  }

  /** Watches the run until its spawner has ended and its fate is known; then ends what lives. */
  async function settle(folder: string, spawner: ChildProcess): Promise<'requeue' | 'leave'> {
    while (spawner.exitCode === null && spawner.signalCode === null) {
      expect(seenUnowned(folder)).toBe(false)
      await pause(1)
    }
    if (!isHeld(folder)) {
      expect(seenUnowned(folder)).toBe(false)
      expect(['absent', 'starting']).toContain(journalOf(folder))
      return 'requeue'
    }
    const pid = await waitUntil('the run owns its claim', () => {
      expect(isHeld(folder)).toBe(true)
      return /^owned (\d+)$/.exec(journalOf(folder))?.[1]
    })
    const runner = identifyProcess(Number(pid))
    assert.ok(runner, 'the runner lives')
    expect(killIdentity(runner, 'SIGKILL')).toBe(true)
    await waitUntil('the claim of a dead run is free', () => !isHeld(folder))
    return 'leave'
  }

  test.each([
    [1, 'absent', 'requeue'],
    [2, 'absent', 'requeue'],
    [3, 'starting', 'requeue'],
    [4, 'starting', 'leave'],
    [5, 'starting', 'leave'],
  ] as const)(
    'death of the spawner after step %i leaves the journal %s: %s',
    async (step, journal, fate) => {
      const folder = newFolder()
      const spawner = startSpawner(folder, step)
      await once(spawner, 'exit')
      expect(spawner.signalCode).toBe('SIGKILL')
      if (fate === 'requeue') expect(journalOf(folder)).toBe(journal)
      expect(await settle(folder, spawner)).toBe(fate)
    },
  )

  test(`no run is ever seen unowned while its spawner is killed ${KILLS} times`, async () => {
    const fates = { requeue: 0, leave: 0 }
    let kills = 0
    // Kept so that about one kill in five comes after the hand-over, however slow the machine is.
    let longestMs = 50
    const lane = async (): Promise<void> => {
      while (kills < KILLS) {
        kills += 1
        const folder = newFolder()
        const spawner = startSpawner(folder)
        await begun(spawner)
        setTimeout(() => spawner.kill('SIGKILL'), Math.random() * longestMs)
        const fate = await settle(folder, spawner)
        expect(spawner.signalCode).toBe('SIGKILL')
        fates[fate] += 1
        longestMs *= fate === 'requeue' ? 1.03 : 0.9
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    expect(fates.requeue + fates.leave).toBe(KILLS)
    expect(runnerOf(root)).toBeNull()
    // The kills fell on both sides of the hand-over, so it really was in between.
    expect(fates.requeue).toBeGreaterThan(KILLS / 20)
    expect(fates.leave).toBeGreaterThan(KILLS / 20)
  }, 240_000)
})

describe('claims', () => {
  const RUN = '01HZZZZZZZZZZZZZZZZZZZZZZZ'
  const OTHER = '01J00000000000000000000000'
  const KEY = { owner: 'Owner', name: 'Repo', number: 7 }
  const clock: Clock = { now: () => 1_767_225_600_000, sleep: async () => {} }

  let stateDir: string
  let claims: Claims
  let path: string
  let holder: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  beforeAll(() => {
    holder = bundleFixture('daemon-actor')
    actors = actorsOf(holder.path)
  })
  afterAll(() => holder.remove())
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), 'claims-'))
    claims = openClaims({ clock }, stateDir)
    path = layoutOf(stateDir).claim(KEY)
  })
  afterEach(async () => {
    await actors.endAll()
    rmSync(stateDir, { recursive: true, force: true })
  })

  const note = (): unknown => JSON.parse(readFileSync(path, 'utf8'))
  const take = (runId = RUN) => {
    const claim = claims.take(KEY, runId)
    if (claim === null) throw new RangeError('the claim is held')
    return claim
  }

  const byNumber = (found: ReturnType<Claims['list']>): ReturnType<Claims['list']> =>
    [...found].sort((a, b) => a.key.number - b.key.number)

  describe('who holds a claim', () => {
    test('one taker at a time, until it lets go', () => {
      expect(claims.isHeld(KEY)).toBe(false)
      const claim = take()
      expect(claim).toMatchObject({ key: KEY, runId: RUN })
      expect(claim.isCurrent()).toBe(true)
      expect(claims.isHeld(KEY)).toBe(true)
      expect(claims.isHeld({ ...KEY, owner: 'OWNER' })).toBe(true)
      expect(claims.isHeld({ ...KEY, number: 8 })).toBe(false)
      expect(claims.take({ ...KEY, name: 'REPO' }, OTHER)).toBe(null)
      claim.close()
      expect(claims.isHeld(KEY)).toBe(false)
      take(OTHER).close()
    })

    test('asking makes no file', () => {
      expect(claims.isHeld(KEY)).toBe(false)
      expect(readdirSync(stateDir)).toEqual([])
    })

    test('a file without a lock is nobody’s, whatever it says', () => {
      take().close()
      expect(existsSync(path)).toBe(true)
      expect(claims.isHeld(KEY)).toBe(false)
      take(OTHER).close()
      expect(note()).toMatchObject({ runId: OTHER })
    })

    test('the file says whose it is, for its owner only', () => {
      const claim = take()
      expect(note()).toEqual({
        format: 'caduceus-claim',
        version: 2,
        key: KEY,
        runId: RUN,
        pid: process.pid,
        startedAt: '2026-01-01T00:00:00.000Z',
      })
      expect(statSync(path).mode & 0o777).toBe(0o600)
      claim.close()
    })

    test('a later taker keeps the file, so that the lock stays one', () => {
      take().close()
      const { ino } = statSync(path)
      take(OTHER).close()
      expect(statSync(path).ino).toBe(ino)
    })

    test('release removes the file and lets go', () => {
      take().release()
      expect(existsSync(path)).toBe(false)
      expect(claims.isHeld(KEY)).toBe(false)
    })

    test('release leaves a file that took the place of ours', () => {
      const claim = take()
      rmSync(path)
      const successor = take(OTHER)
      expect(claim.isCurrent()).toBe(false)
      claim.release()
      expect(successor.isCurrent()).toBe(true)
      expect(claims.isHeld(KEY)).toBe(true)
      successor.release()
    })

    test('several processes that race get one winner', async () => {
      const racers = Array.from({ length: 6 }, () =>
        actors.start(['hold-claim', stateDir, RUN, 'take']),
      )
      await waitUntil('all answers', () => racers.every((racer) => racer.said() !== ''))
      const answers = racers.map((racer) => racer.said().trim())
      expect(answers.filter((answer) => answer === 'held')).toHaveLength(1)
      expect(answers.filter((answer) => answer === 'lost')).toHaveLength(5)
      expect(claims.isHeld(KEY)).toBe(true)
      await Promise.all(racers.map((racer) => racer.kill()))
      expect(claims.isHeld(KEY)).toBe(false)
    })
  })

  describe('how a claim is handed over', () => {
    test('a child given the descriptor holds it after its parent closed it, and says so', async () => {
      const claim = take()
      const child = actors.start(['hold-claim', stateDir, RUN, 'inherit'], {
        stdio: ['ignore', 'pipe', 'inherit', claim.fd],
      })
      claim.close()
      await waitUntil('the answer', () => child.said() !== '')
      expect(child.said()).toBe('held\n')
      expect(claims.isHeld(KEY)).toBe(true)
      expect(claims.take(KEY, OTHER)).toBe(null)
      expect(note()).toMatchObject({ runId: RUN, pid: child.process.pid })
      await child.kill()
      expect(claims.isHeld(KEY)).toBe(false)
    })

    test('a claim of another run or issue is not taken for ours', async () => {
      const claim = take(OTHER)
      const child = actors.start(['hold-claim', stateDir, RUN, 'inherit'], {
        stdio: ['ignore', 'pipe', 'inherit', claim.fd],
      })
      await waitUntil('the answer', () => child.said() !== '')
      expect(child.said()).toBe('lost\n')
      await child.kill()
      expect(claims.inherit(claim.fd, { ...KEY, number: 8 }, OTHER)).toBe(null)
      claim.close()
    })

    test('a claim whose file was replaced is not current', () => {
      const claim = take()
      renameSync(path, `${path}.old`)
      expect(claims.inherit(claim.fd, KEY, RUN)).toBe(null)
      expect(claims.isHeld(KEY)).toBe(false)
      claim.close()
    })

    test('a note that was cut off is nobody’s claim', () => {
      const claim = take()
      writeFileSync(path, '{"format":"caduceus-cl')
      expect(claims.inherit(claim.fd, KEY, RUN)).toBe(null)
      claim.close()
    })
  })

  describe('which claims are listed', () => {
    test('those the files name, held or not', () => {
      const claim = take()
      claims.take({ ...KEY, number: 8 }, OTHER)?.close()
      claims.take({ ...KEY, number: 9 }, OTHER)?.release()
      expect(byNumber(claims.list())).toEqual([
        { key: KEY, runId: RUN },
        { key: { ...KEY, number: 8 }, runId: OTHER },
      ])
      claim.close()
    })

    test('none before there is a folder', () => {
      expect(claims.list()).toEqual([])
      expect(readdirSync(stateDir)).toEqual([])
    })

    test('files that are no claims hide none', () => {
      take().close()
      const good = readFileSync(path)
      const folder = join(stateDir, 'claims')
      const named = (digit: string): string => join(folder, `${digit.repeat(64)}.claim`)
      writeFileSync(named('0'), good)
      writeFileSync(named('1'), '{')
      writeFileSync(named('2'), 'x'.repeat(1_000_000))
      writeFileSync(named('3'), JSON.stringify({ key: { ...KEY, name: '..' }, runId: RUN }))
      writeFileSync(named('4'), JSON.stringify({ key: KEY, runId: '../x' }))
      symlinkSync(path, named('5'))
      mkdirSync(named('6'))
      writeFileSync(join(folder, 'note.txt'), good)
      expect(claims.list()).toEqual([{ key: KEY, runId: RUN }])
    })
  })

  describe('what else lies in the folder', () => {
    test('stray files and links are left alone', () => {
      const folder = join(stateDir, 'claims')
      mkdirSync(folder)
      writeFileSync(join(folder, 'note.txt'), 'mine')
      symlinkSync('/nowhere', join(folder, `${'0'.repeat(64)}.claim`))
      take().release()
      expect(readdirSync(folder).sort()).toEqual([`${'0'.repeat(64)}.claim`, 'note.txt'])
    })

    test('a link in the place of a claim is not followed', () => {
      const target = join(stateDir, 'target')
      mkdirSync(join(stateDir, 'claims'))
      symlinkSync(target, path)
      expect(() => claims.take(KEY, RUN)).toThrow(/symbolic link/)
      expect(existsSync(target)).toBe(false)
    })
  })
})
