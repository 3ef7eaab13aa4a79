import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { Claims, Clock } from '../../daemon/core/ports.ts'
import { openClaims } from '../../daemon/state/claims.ts'
import { layoutOf } from '../../daemon/state/layout.ts'
import { actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'

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
