import { execFileSync, spawnSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { systemClock } from '../../daemon/sys/clock.ts'
import { environment, homeDirectory } from '../../daemon/sys/environment.ts'
import {
  appendLine,
  closeDescriptor,
  copyFile,
  ensureDirectory,
  fileStatus,
  isDirectory,
  isExecutableFile,
  listDirectory,
  openToAppend,
  readFileBounded,
  removeFile,
  removePath,
  writeFileAtomic,
} from '../../daemon/sys/files.ts'
import { realPath } from '../../daemon/sys/paths.ts'
import { openPidfd, signalPidfd } from '../../daemon/sys/pidfd.ts'
import { createPipe } from '../../daemon/sys/pipe.ts'
import { reap } from '../../daemon/sys/reap.ts'
import { syncFilesystemOf } from '../../daemon/sys/sync-filesystem.ts'
import { actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'
import { createSharedClock } from '../support/program-rig.ts'

const NOBODY = 65534

describe('files', () => {
  let program: ReturnType<typeof bundleFixture>
  let root: string
  let path: string

  beforeAll(() => {
    program = bundleFixture('sys-actor')
  })

  afterAll(() => program.remove())

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'files-'))
    path = join(root, 'file')
  })

  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const modeOf = (file: string): number => statSync(file).mode & 0o777
  const fifoAt = (file: string): void => void execFileSync('mkfifo', [file])
  const ioFault = (reason: string): unknown =>
    expect.objectContaining({ code: 'sys/io', details: expect.objectContaining({ reason }) })

  describe('reading', () => {
    test('a file up to the bound is read whole, one byte more is refused', () => {
      writeFileSync(path, 'x'.repeat(10_000))
      expect(readFileBounded(path, 10_000)?.toString()).toBe('x'.repeat(10_000))
      expect(() => readFileBounded(path, 9_999)).toThrow(ioFault('too large'))
      writeFileSync(path, '')
      expect(readFileBounded(path, 0)?.length).toBe(0)
    })

    test('absence is a value', () => {
      expect(readFileBounded(path, 10)).toBeNull()
      writeFileSync(path, '')
      expect(readFileBounded(join(path, 'below'), 10)).toBeNull()
    })

    test.each([
      ['a folder', 'not a regular file', (at: string) => mkdirSync(at)],
      ['a pipe', 'not a regular file', fifoAt],
      ['a link', 'a symbolic link', (at: string) => symlinkSync('/etc/hostname', at)],
      ['a dangling link', 'a symbolic link', (at: string) => symlinkSync('nowhere', at)],
    ])('%s is refused at once', (_, reason, make) => {
      make(path)
      expect(() => readFileBounded(path, 100)).toThrow(ioFault(reason))
    })

    test('a device is refused, and a sparse giant is not read', () => {
      expect(() => readFileBounded('/dev/zero', 100)).toThrow(ioFault('not a regular file'))
      writeFileSync(path, '')
      truncateSync(path, 2 ** 40)
      expect(() => readFileBounded(path, 1024 ** 2)).toThrow(ioFault('too large'))
    })

    test('files that tell no size are read to their end, within the bound', () => {
      const text = readFileBounded(`/proc/${process.pid}/status`, 100_000)?.toString()
      expect(text).toContain('Threads:')
      expect(() => readFileBounded(`/proc/${process.pid}/status`, 100)).toThrow(
        ioFault('too large'),
      )
    })
  })

  describe('replacing', () => {
    test('content and permissions are exactly those given, whatever was there', () => {
      writeFileAtomic(path, 'first')
      expect(modeOf(path)).toBe(0o600)
      chmodSync(path, 0o400)
      writeFileAtomic(path, new Uint8Array([104, 105]), 0o755)
      expect(readFileSync(path, 'utf8')).toBe('hi')
      expect(modeOf(path)).toBe(0o755)
      expect(readdirSync(root)).toEqual(['file'])
    })

    test('a link at the path is refused and its target untouched', () => {
      const target = join(root, 'target')
      writeFileSync(target, 'kept')
      symlinkSync(target, path)
      expect(() => writeFileAtomic(path, 'new')).toThrow(ioFault('a symbolic link'))
      expect(() => copyFile(target, path)).toThrow(ioFault('a symbolic link'))
      expect(readFileSync(target, 'utf8')).toBe('kept')
    })

    test('a folder or a pipe at the path is refused', () => {
      mkdirSync(path)
      expect(() => writeFileAtomic(path, 'new')).toThrow(ioFault('not a regular file'))
      fifoAt(join(root, 'pipe'))
      expect(() => writeFileAtomic(join(root, 'pipe'), '')).toThrow(ioFault('not a regular file'))
    })

    test('a failed replacement leaves the old content and no temporary file', () => {
      writeFileAtomic(path, 'old')
      expect(() => writeFileAtomic(join(root, 'absent', 'file'), 'x')).toThrow('ENOENT')
      expect(() => writeFileAtomic(join(root, 'n'.repeat(250)), 'x')).toThrow('ENAMETOOLONG')
      // A limit on the size of files cuts the write in the middle, as a full disk does.
      const argv = ['-c', 'ulimit -f 64 && exec "$@"', 'sh', process.execPath, program.path]
      const limited = spawnSync('sh', [...argv, 'write-once', path, '300000'])
      expect(limited.stdout.toString()).toContain('EFBIG')
      expect(readFileSync(path, 'utf8')).toBe('old')
      expect(readdirSync(root)).toEqual(['file'])
    })

    test('a copy has the bytes and permissions of its source', () => {
      writeFileSync(path, 'source')
      chmodSync(path, 0o640)
      const copy = join(root, 'copy')
      copyFile(path, copy)
      writeFileSync(path, 'changed')
      copyFile(path, copy)
      expect(readFileSync(copy, 'utf8')).toBe('changed')
      expect(modeOf(copy)).toBe(0o640)
      expect(() => copyFile(join(root, 'absent'), copy)).toThrow('ENOENT')
      expect(readdirSync(root).sort()).toEqual(['copy', 'file'])
    })
  })

  describe('folders', () => {
    test('missing folders are made with the mode, present ones kept', () => {
      const deep = join(root, 'a', 'b', 'c')
      ensureDirectory(deep)
      expect(modeOf(deep)).toBe(0o700)
      expect(modeOf(join(root, 'a'))).toBe(0o700)
      chmodSync(deep, 0o750)
      ensureDirectory(`${deep}/`)
      expect(modeOf(deep)).toBe(0o750)
    })

    test('a link or a file in the place of a folder is refused', () => {
      symlinkSync(root, path)
      expect(() => ensureDirectory(path)).toThrow(ioFault('a symbolic link'))
      writeFileSync(join(root, 'plain'), '')
      expect(() => ensureDirectory(join(root, 'plain'))).toThrow('EEXIST')
    })

    test('names are listed in order; an absent folder has none', () => {
      for (const name of ['b', 'a', 'c']) writeFileSync(join(root, name), '')
      expect(listDirectory(root)).toEqual(['a', 'b', 'c'])
      expect(listDirectory(path)).toEqual([])
      expect(() => listDirectory(join(root, 'a'))).toThrow('ENOTDIR')
    })
  })

  describe('looking', () => {
    test('the kind of each thing is told without following links', () => {
      writeFileSync(path, 'four')
      symlinkSync(path, join(root, 'link'))
      fifoAt(join(root, 'pipe'))
      expect(fileStatus(path)).toMatchObject({ kind: 'file', size: 4, mode: modeOf(path) })
      expect(fileStatus(root)?.kind).toBe('directory')
      expect(fileStatus(join(root, 'link'))?.kind).toBe('symlink')
      expect(fileStatus(join(root, 'pipe'))?.kind).toBe('other')
      expect(fileStatus(join(path, 'below'))).toBeNull()
      expect(fileStatus(join(root, 'absent'))).toBeNull()
    })

    test('a path is resolved as the kernel follows its links, and one without an end is a fault', () => {
      mkdirSync(join(root, 'far', 'deep'), { recursive: true })
      symlinkSync('far/deep', join(root, 'link'))
      symlinkSync('link/..', join(root, 'by'))
      const real = realPath(root)
      expect(real).not.toBeNull()
      expect(realPath(join(root, 'by'))).toBe(`${real}/far`)
      expect(realPath(join(root, 'by', 'absent'))).toBeNull()
      symlinkSync('round', join(root, 'round'))
      expect(() => realPath(join(root, 'round'))).toThrow(/ELOOP/)
    })

    test('only a regular file with permission is executable', () => {
      expect(isExecutableFile(process.execPath)).toBe(true)
      writeFileSync(path, '', { mode: 0o644 })
      expect(isExecutableFile(path)).toBe(false)
      expect(isExecutableFile(root)).toBe(false)
      expect(isExecutableFile(join(root, 'absent'))).toBe(false)
      expect([isDirectory(root), isDirectory(path), isDirectory(join(root, 'x'))]).toEqual([
        true,
        false,
        false,
      ])
    })
  })

  describe('appending', () => {
    test('lines are added to a private file; a link is refused', () => {
      appendLine(path, 'one')
      appendLine(path, 'two')
      const fd = openToAppend(path)
      writeFileSync(fd, 'three\n')
      closeDescriptor(fd)
      expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n')
      expect(modeOf(path)).toBe(0o600)
      symlinkSync(path, join(root, 'link'))
      expect(() => appendLine(join(root, 'link'), 'x')).toThrow('ELOOP')
    })
  })

  describe('removing', () => {
    test('absent things are removed already', async () => {
      removeFile(path)
      await removePath(path)
      writeFileSync(path, '')
      removeFile(path)
      expect(existsSync(path)).toBe(false)
    })

    test('a link is removed, never what it leads to', async () => {
      const outside = join(root, 'outside')
      mkdirSync(outside)
      writeFileSync(join(outside, 'kept'), '')
      const tree = join(root, 'tree')
      mkdirSync(tree)
      symlinkSync(outside, join(tree, 'link'))
      await removePath(tree)
      symlinkSync(outside, path)
      await removePath(path)
      expect([existsSync(tree), existsSync(path)]).toEqual([false, false])
      expect(readdirSync(outside)).toEqual(['kept'])
    })

    test('folders nobody may write, and a nest too deep to name, are removed by their owner', () => {
      // Permissions do not bind root, so the whole happens as another user.
      chmodSync(root, 0o777)
      const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
      const { stdout } = spawnSync(
        process.execPath,
        [program.path, 'remove-stubborn', join(root, 'tree')],
        user,
      )
      expect(stdout.toString()).toBe('planted\nremoved\n')
      expect(readdirSync(root)).toEqual([])
    })
  })
})

describe('native calls', () => {
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
        const flags = /flags:\s*(\d+)/.exec(
          readFileSync(`/proc/${process.pid}/fdinfo/${fd}`, 'utf8'),
        )
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
      expect(await probe()).toContain(
        'The native interface could not be loaded: Cannot find module',
      )
      rmSync(elsewhere, { recursive: true })
    })
  })
})

describe('the clock', () => {
  const DAY_MS = 86_400_000

  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  let root: string

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
    root = mkdtempSync(join(tmpdir(), 'clock-'))
  })

  afterEach(() => actors.endAll())

  afterAll(() => {
    program.remove()
    rmSync(root, { recursive: true, force: true })
  })

  describe('sleeping', () => {
    test('lasts as long as asked for, not less', async () => {
      const start = performance.now()
      await systemClock.sleep(120)
      expect(performance.now() - start).toBeGreaterThanOrEqual(119)
      await systemClock.sleep(0)
      await systemClock.sleep(-5)
    })

    test('ends with an abort, before or during it, and leaves no listener', async () => {
      const controller = new AbortController()
      const sleeping = systemClock.sleep(DAY_MS, controller.signal)
      expect(getEventListeners(controller.signal, 'abort').length).toBe(1)
      controller.abort()
      await sleeping
      await systemClock.sleep(DAY_MS, controller.signal)
      expect(getEventListeners(controller.signal, 'abort').length).toBe(0)
    })

    test('one signal ends many at the same time, without a warning', async () => {
      const controller = new AbortController()
      const sleeping = Array.from({ length: 50 }, () =>
        systemClock.sleep(DAY_MS, controller.signal),
      )
      controller.abort()
      await Promise.all(sleeping)
      expect(getEventListeners(controller.signal, 'abort').length).toBe(0)
    })

    test('a clock set back cannot prolong it', async () => {
      const realNow = Date.now
      const sleeping = systemClock.sleep(100)
      Date.now = () => realNow() - DAY_MS
      await sleeping
      Date.now = realNow
    })
  })

  describe('the shared clock of tests', () => {
    test('every process started with it tells the same time, in every way', async () => {
      const clock = createSharedClock(root)
      clock.advance(DAY_MS)
      const said = await actors.start(['now'], { env: clock.env }).ended()
      const [now = 0, constructed = 0, port = 0, explicit = 0] = said.split(' ').map(Number)
      for (const time of [now, constructed, port])
        expect(Math.abs(time - clock.now())).toBeLessThan(30_000)
      expect(explicit).toBe(5)
      const plain = await actors.start(['now']).ended()
      expect(Math.abs(Number(plain.split(' ')[0]) - Date.now())).toBeLessThan(30_000)
    })

    test('advancing it wakes a sleeper in another process', async () => {
      const clock = createSharedClock(root)
      const sleeper = actors.start(['sleep', String(DAY_MS)], { env: clock.env })
      await waitUntil('it sleeps', () => sleeper.said() === 'asleep\n')
      clock.advance(DAY_MS)
      expect(await sleeper.ended()).toBe('asleep\nawake\n')
    })
  })
})

describe('the environment', () => {
  test('is a copy: changing ours later does not change it', () => {
    process.env['CADUCEUS_TEST_VARIABLE'] = 'before'
    const copy = environment()
    process.env['CADUCEUS_TEST_VARIABLE'] = 'after'
    expect(copy['CADUCEUS_TEST_VARIABLE']).toBe('before')
    delete process.env['CADUCEUS_TEST_VARIABLE']
    expect(environment()['CADUCEUS_TEST_VARIABLE']).toBeUndefined()
  })

  test('names a home only by an absolute HOME', () => {
    expect(homeDirectory({ HOME: '/home/someone' })).toBe('/home/someone')
    for (const env of [{}, { HOME: '' }, { HOME: 'relative' }])
      expect(homeDirectory(env)).toBeNull()
  })
})

describe('a process at its n-th effect', () => {
  const PRELOAD = new URL('../support/crash-at-effect.mjs', import.meta.url).href

  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  let root: string

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
    root = mkdtempSync(join(tmpdir(), 'effects-'))
  })

  afterEach(() => actors.endAll())

  afterAll(() => {
    program.remove()
    rmSync(root, { recursive: true, force: true })
  })

  async function run(
    env: Record<string, string>,
  ): Promise<{ said: string; signal: string | null }> {
    const options = { env: { NODE_OPTIONS: `--import=${PRELOAD}`, ...env } }
    const actor = actors.start(['count-effects'], options)
    const said = await actor.ended()
    return { said, signal: actor.process.signalCode }
  }

  test.each([
    ['2', 'first\n'],
    ['2:after', 'first\nsecond\n'],
    ['1:before', ''],
  ])('with crash at %s it had done so much', async (at, said) => {
    expect(await run({ TEST_CRASH_AT: at })).toEqual({ said, signal: 'SIGKILL' })
  })

  test('other processes, and later numbers, are left alone', async () => {
    const whole = { said: 'first\nsecond\nthird\n', signal: null }
    expect(await run({ TEST_CRASH_AT: '4' })).toEqual(whole)
    expect(await run({ TEST_CRASH_AT: '1', TEST_CRASH_PROCESS: 'another' })).toEqual(whole)
    const matching = { TEST_CRASH_AT: '1', TEST_CRASH_PROCESS: 'sys-actor.* count-' }
    expect(await run(matching)).toMatchObject({ signal: 'SIGKILL' })
  })

  test('every effect is logged where a file is named', async () => {
    const log = join(root, 'log')
    await run({ TEST_EFFECT_LOG: log, TEST_CRASH_AT: '2:after' })
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/^\d+ /, ''))).toEqual([
      '1 actor.first before',
      '1 actor.first after',
      '2 actor.second before',
      '2 actor.second after',
    ])
  })
})

describe('leaving before the work is done', () => {
  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
  })
  afterEach(() => actors.endAll())
  afterAll(() => program.remove())

  const ready = async (...args: readonly string[]) => {
    const actor = actors.start(['drain', ...args])
    await waitUntil('it is ready', () => actor.said().includes('ready'))
    return actor
  }

  test('when the time is over: exit code 1, and a line that says so', async () => {
    const actor = actors.start(['leave-after', '50', 'out of time'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let told = ''
    actor.process.stderr?.on('data', (chunk: Buffer) => {
      told += chunk.toString()
    })
    await actor.ended()
    expect([actor.process.exitCode, told]).toEqual([1, 'out of time\n'])
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'the first %s asks; when it takes too long, it leaves',
    async (signal) => {
      const actor = await ready('50')
      actor.process.kill(signal)
      expect(await actor.ended()).toBe('ready\nasked\n')
      expect(actor.process.exitCode).toBe(0)
    },
  )

  test('the second leaves at once', async () => {
    const actor = await ready('60000')
    actor.process.kill('SIGTERM')
    await waitUntil('it was asked', () => actor.said().includes('asked'))
    actor.process.kill('SIGINT')
    await actor.ended()
    expect(actor.process.exitCode).toBe(0)
  })

  test('afterwards signals mean what they always mean', async () => {
    const actor = await ready('60000', 'stopped')
    actor.process.kill('SIGTERM')
    expect(await actor.ended()).toBe('ready\n')
    expect(actor.process.signalCode).toBe('SIGTERM')
  })
})
