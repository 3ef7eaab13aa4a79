import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { startTranscript, type Transcript } from '../../daemon/supervisor/transcript.ts'
import { environmentOf } from '../../daemon/sys/process-identity.ts'
import { buildSupervisor, type Rig, shell, writeScript } from '../support/supervisor-rig.ts'
import { waitUntil } from '../support/wait-until.ts'

describe('a supervised run', () => {
  const supervisor = buildSupervisor()
  let rig: Rig

  beforeEach(() => {
    rig = supervisor.open()
  })
  afterEach(() => rig.close())
  afterAll(() => supervisor.remove())

  test('the supervisor is a small program', () => {
    expect(statSync(supervisor.path).size).toBeLessThan(120 * 1024)
  })

  describe('what a supervised worker gets', () => {
    test('its environment is exactly the given one', async () => {
      const environment = {
        CADUCEUS_RUN_ID: rig.request.runId,
        ODD: 'two\nlines = "ü" $X',
        EMPTY: '',
      }
      await rig.run({
        environment,
        argv: [
          '/usr/bin/env',
          'python3',
          '-c',
          'import os; open("env","wb").write(open(f"/proc/{os.getpid()}/environ","rb").read())',
        ],
      })
      const found = (rig.read('env') ?? '').split('\0').slice(0, -1)
      expect(found.sort()).toEqual(
        Object.entries(environment)
          .map(([name, value]) => `${name}=${value}`)
          .sort(),
      )
    })

    test('it works in its tree, with an empty stdin, one pipe for both streams and the tree lock as 3', async () => {
      const report = await rig.run({
        argv: shell(
          'pwd; cat; for fd in 1 2 3; do readlink /proc/$$/fd/$fd; done; test ! -e /proc/$$/fd/4',
        ),
      })
      const [cwd, one, two, three] = rig.transcript().split('\n')
      expect(report.exitCode).toBe(0)
      expect(cwd).toBe(rig.request.treePath)
      expect(one).toMatch(/^pipe:/)
      expect(two).toBe(one)
      expect(three).toBe(`${rig.request.directory}/tree.lock`)
    })

    test('it leads its own session, which started.json names', async () => {
      await rig.run({ argv: shell('echo $$ > pid; cut -d" " -f5,6 /proc/$$/stat > ids') })
      const pid = Number(rig.read('pid'))
      expect(rig.read('ids')).toBe(`${pid} ${pid}\n`)
      expect(rig.started()?.worker).toMatchObject({ pid, session: pid })
    })

    test('nothing secret stands in the supervisor’s environment, arguments or files', async () => {
      const secret = ['only', 'the', 'worker', 'may', 'know'].join('-')
      const environment = { ...rig.request.environment, PROVIDER_KEY: secret }
      const request = {
        ...rig.request,
        environment,
        argv: shell('echo "$PROVIDER_KEY" > seen; touch up; sleep 600'),
      }
      await rig.executor.launch(request)
      await waitUntil('the worker is up', () => rig.read('up') !== null)
      const pid = rig.started()?.supervisor.pid ?? 0
      expect(rig.read('seen')).toBe(`${secret}\n`)
      expect(environmentOf(pid)).toEqual({ PATH: process.env['PATH'] })
      for (const name of [
        'run/launch.json',
        'run/started.json',
        'run/sup.lock',
        'supervisor.log',
      ]) {
        expect(readFileSync(join(rig.root, name), 'latin1')).not.toContain(secret)
      }
      expect(readFileSync(`/proc/${pid}/cmdline`, 'latin1')).not.toContain(secret)
      rig.executor.cancel(request)
      await rig.executor.watch(request)
    })
  })

  describe('what is told of a worker’s end', () => {
    test.each([
      ['an exit code', 'exit 7', { exitCode: 7, signal: null }],
      ['a signal of its own', 'kill -SEGV $$', { exitCode: null, signal: 'SIGSEGV' }],
      ['a kill from elsewhere', 'kill -KILL $$', { exitCode: null, signal: 'SIGKILL' }],
      ['an end without fd 3', 'exec 3>&-; exit 0', { exitCode: 0, signal: null }],
    ])('%s', async (_, script, expected) => {
      expect(await rig.run({ argv: shell(script) })).toMatchObject({
        reason: 'exited',
        ...expected,
      })
      expect(rig.processes()).toEqual([])
    })

    test.each([
      ['an absent program', () => rig.inTree('absent'), 'ENOENT'],
      [
        'a file that is not executable',
        () => {
          writeFileSync(rig.inTree('plain'), '#!/bin/sh\n', { mode: 0o644 })
          return rig.inTree('plain')
        },
        'EACCES',
      ],
      [
        'a script without its interpreter',
        () => writeScript(rig.inTree('script'), '#!/nowhere/interpreter\n'),
        'its interpreter is missing',
      ],
    ])('%s is told as a failed spawn', async (_, program, detail) => {
      const report = await rig.run({ argv: [program()] })
      expect(report).toMatchObject({ reason: 'spawn-failed', detail, exitCode: null, signal: null })
      expect(rig.started()?.worker).toBeNull()
    })

    test('an environment larger than the system takes is told as a failed spawn', async () => {
      const environment = { ...rig.request.environment, LARGE: 'x'.repeat(200_000) }
      expect(await rig.run({ environment })).toMatchObject({
        reason: 'spawn-failed',
        detail: 'E2BIG',
      })
    })

    test('a worker that removes its own tree is reported all the same', async () => {
      const report = await rig.run({ argv: shell('rm -rf "$PWD"; exit 0') })
      expect(report).toMatchObject({ reason: 'exited', exitCode: 0 })
    })
  })

  describe('which output is kept', () => {
    const LINES = 5000

    test('both streams in the order they were written', async () => {
      await rig.run({
        transcriptMaxBytes: 1_000_000,
        argv: [
          '/usr/bin/env',
          'python3',
          '-c',
          `import os\nfor n in range(${LINES}): os.write(1 + n % 2, b"%d\\n" % n)`,
        ],
      })
      const expected = Array.from({ length: LINES }, (_, n) => `${n}\n`).join('')
      expect(rig.transcript()).toBe(expected)
    })

    test.each([
      ['an exact fit stays whole', 1000, 1000, ''],
      ['one byte too many is cut behind the marker', 1001, 1000, '\n...<truncated 1 bytes>\n'],
      ['a flood is counted to the byte', 50_000_000, 1000, '\n...<truncated 49999000 bytes>\n'],
      ['a cap of zero keeps only the marker', 5, 0, '\n...<truncated 5 bytes>\n'],
    ])('%s', async (_, written, transcriptMaxBytes, marker) => {
      const argv = shell(`head -c ${written} /dev/zero | tr '\\0' x`)
      const report = await rig.run({ transcriptMaxBytes, argv })
      const expected = `${'x'.repeat(Math.min(written, transcriptMaxBytes))}${marker}`
      expect(rig.transcript()).toBe(expected)
      expect(report).toMatchObject({
        exitCode: 0,
        transcriptBytes: expected.length,
        transcriptTruncated: marker !== '',
      })
    })

    test('a transcript that cannot grow ends the run, and the report says why', async () => {
      await rig.close()
      // 8 blocks of 512 bytes: room for the report, not for the output.
      const limited = ['/bin/sh', '-c', 'ulimit -f 8; exec "$@"', 'sh'] as const
      rig = supervisor.open({ argv: [...limited, process.execPath, supervisor.path] })
      const report = await rig.run({ argv: shell('while :; do echo 0123456789; done') })
      expect(report).toMatchObject({
        reason: 'transcript-failed',
        detail: 'EFBIG',
        transcriptTruncated: true,
      })
      expect(rig.processes()).toEqual([])
    })

    test('an earlier file of that name is emptied and closed to others', async () => {
      writeFileSync(rig.request.transcriptPath, 'older', { mode: 0o644 })
      await rig.run({ argv: shell('printf new') })
      expect(rig.transcript()).toBe('new')
      expect(statSync(rig.request.transcriptPath).mode & 0o777).toBe(0o600)
    })

    test('a link in its place is refused before anything is paid', async () => {
      symlinkSync(rig.inTree('target'), rig.request.transcriptPath)
      const request = { ...rig.request, argv: shell('touch ran') }
      await rig.executor.launch(request)
      expect(await rig.executor.watch(request)).toEqual({ kind: 'vanished', workerStarted: false })
      expect(rig.read('ran')).toBeNull()
      expect(rig.read('target')).toBeNull()
    })
  })
})

describe('what is kept of an output', () => {
  let folder: string
  let path: string
  let transcript: Transcript | null

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transcript-'))
    path = join(folder, 'run.log')
    transcript = null
  })
  afterEach(() => {
    transcript?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const content = (): string => readFileSync(path, 'latin1')

  function write(maxBytes: number, ...pieces: readonly string[]): Transcript {
    transcript = startTranscript(path, maxBytes)
    for (const piece of pieces) transcript.write(Buffer.from(piece))
    return transcript
  }

  test('pieces up to the cap, wherever they meet it', () => {
    expect(write(10, '12345', '67890').finish()).toEqual({ bytes: 10, truncated: false })
    expect(content()).toBe('1234567890')
    transcript?.close()
    write(10, '1234567', '89012', '345').finish()
    expect(content()).toBe('1234567890\n...<truncated 5 bytes>\n')
  })

  test('one marker, however often it is finished', () => {
    const started = write(3, '12345')
    const first = started.finish()
    expect(started.finish()).toEqual(first)
    expect(first).toEqual({ bytes: content().length, truncated: true })
    expect(content()).toBe('123\n...<truncated 2 bytes>\n')
  })

  test('nothing at all is no truncation', () => {
    expect(write(0).finish()).toEqual({ bytes: 0, truncated: false })
  })

  test('room can be made by giving up the end, and the marker counts what was given up', () => {
    const started = write(200_000, 'x'.repeat(100_000))
    started.finish()
    expect(started.makeRoom()).toBe(true)
    expect(started.finish().truncated).toBe(true)
    const kept = 100_000 - 64 * 1024
    expect(content()).toBe(`${'x'.repeat(kept)}\n...<truncated ${64 * 1024} bytes>\n`)
    expect(started.makeRoom()).toBe(true)
    expect(started.makeRoom()).toBe(false)
    started.finish()
    expect(content()).toBe('\n...<truncated 100000 bytes>\n')
  })

  test.each([
    ['a link', () => symlinkSync('/dev/null', path)],
    ['a folder', () => mkdirSync(path)],
  ])('%s in its place is refused', (_, make) => {
    make()
    expect(() => startTranscript(path, 10)).toThrow(expect.objectContaining({ code: 'sys/io' }))
  })
})
