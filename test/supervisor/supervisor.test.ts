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
import type { LaunchRequest } from '../../daemon/core/executor.ts'
import { LIMITS } from '../../daemon/core/limits.ts'
import { decideEnd, type Observation } from '../../daemon/supervisor/decide-end.ts'
import { endProcesses } from '../../daemon/supervisor/end-processes.ts'
import type { ProcessTree } from '../../daemon/supervisor/process-tree.ts'
import { startTranscript, type Transcript } from '../../daemon/supervisor/transcript.ts'
import { environmentOf } from '../../daemon/sys/process-identity.ts'
import { waitUntil } from '../support/processes.ts'
import { createSharedClock } from '../support/program-rig.ts'
import { buildSupervisor, type Rig, shell, writeScript } from '../support/supervisor-rig.ts'

const NOT_EXECUTABLE = 'it is neither a program of this machine nor a script with a #! line'

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
    test('an exit code', async () => {
      const report = await rig.run({ argv: shell('exit 7') })
      expect(report).toMatchObject({ reason: 'exited', exitCode: 7, signal: null })
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
      [
        'a script without its first line',
        () => writeScript(rig.inTree('script'), 'exit 0\n'),
        NOT_EXECUTABLE,
      ],
      ['an empty file', () => writeScript(rig.inTree('empty'), ''), NOT_EXECUTABLE],
      ['four bytes of a program', () => program((bytes) => bytes.subarray(0, 4)), NOT_EXECUTABLE],
      [
        'the first page of nothing behind them',
        () => program((bytes) => Buffer.concat([bytes.subarray(0, 4), Buffer.alloc(4096)])),
        NOT_EXECUTABLE,
      ],
      [
        'a program cut behind its header',
        () => program((bytes) => bytes.subarray(0, 64)),
        NOT_EXECUTABLE,
      ],
      [
        'a program of another machine',
        // e_machine: none that exists.
        () => program((bytes) => (bytes.writeUInt16LE(0xfeed, 18), bytes)),
        NOT_EXECUTABLE,
      ],
      [
        'a library’s kind of file',
        () => program((bytes) => (bytes.writeUInt16LE(1, 16), bytes)),
        NOT_EXECUTABLE,
      ],
    ])('%s is told as a failed spawn', async (_, program, detail) => {
      const report = await rig.run({ argv: [program()] })
      expect(report).toMatchObject({ reason: 'spawn-failed', detail, exitCode: null, signal: null })
      expect(rig.started()?.worker).toBeNull()
    })

    test('a program cut in its midst is no success: the system has begun it before it sees that', async () => {
      const cut = program((bytes) => bytes.subarray(0, 1000))
      expect(await rig.run({ argv: [cut] })).toMatchObject({ exitCode: null, signal: 'SIGSEGV' })
    })

    test('a NUL character, which would cut an argument or a variable, is told as a failed spawn', async () => {
      const detail = 'an argument or a variable has a NUL character'
      for (const change of [
        { argv: shell('true\0') },
        { environment: { ...rig.request.environment, ODD: 'a\0b' } },
      ]) {
        await rig.close()
        rig = supervisor.open()
        expect(await rig.run(change)).toMatchObject({ reason: 'spawn-failed', detail })
      }
    })

    test('a tree that is gone is told as a failed spawn', async () => {
      rmSync(rig.request.treePath, { recursive: true })
      expect(await rig.run()).toMatchObject({ reason: 'spawn-failed', detail: 'ENOENT' })
    })

    /** A real program of this machine, changed. */
    function program(change: (bytes: Buffer) => Uint8Array): string {
      writeFileSync(rig.inTree('program'), change(readFileSync('/bin/true')), { mode: 0o755 })
      return rig.inTree('program')
    }

    test('an environment larger than the system takes is told as a failed spawn', async () => {
      const environment = { ...rig.request.environment, LARGE: 'x'.repeat(200_000) }
      expect(await rig.run({ environment })).toMatchObject({
        reason: 'spawn-failed',
        detail: 'E2BIG',
      })
    })
  })

  describe('which output is kept', () => {
    test.each([
      ['an exact fit stays whole', 1000, 1000, ''],
      ['one byte too many is cut behind the marker', 1001, 1000, '\n...<truncated 1 bytes>\n'],
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
      expect(await rig.executor.watch(request)).toEqual({
        kind: 'vanished',
        launched: true,
        workerStarted: false,
      })
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

const RESULT = `echo '{"status": "success"}' > worker-result.json`

describe('why a living worker is ended', () => {
  const calm: Observation = {
    now: 1000,
    deadlineAt: 2000,
    cancelRequested: false,
    signalled: false,
    transcriptFailed: false,
    hasResult: false,
    quietMs: 0,
  }
  const limits = { completionGraceMs: 60, stallMs: 90 }

  test.each<[string, Partial<Observation>, string | null]>([
    ['nothing', {}, null],
    ['the deadline is reached', { now: 2000 }, 'deadline'],
    ['one millisecond before it', { now: 1999 }, null],
    ['a wish comes before the deadline', { now: 2000, cancelRequested: true }, 'cancelled'],
    ['our own end comes before the deadline', { now: 2000, signalled: true }, 'signal'],
    ['a failed transcript', { transcriptFailed: true }, 'transcript-failed'],
    ['quiet with a result', { hasResult: true, quietMs: 60 }, 'completion-grace'],
    ['not quiet long enough', { hasResult: true, quietMs: 59 }, null],
    ['quiet without a result', { quietMs: 89 }, null],
    ['quiet for too long', { quietMs: 90 }, 'stalled'],
    [
      'a result counts before the deadline',
      { now: 2000, hasResult: true, quietMs: 60 },
      'completion-grace',
    ],
  ])('%s', (_, change, reason) => {
    expect(decideEnd({ ...calm, ...change }, limits)).toBe(reason)
  })

  test('both waits are off at 0', () => {
    const seen = { ...calm, hasResult: true, quietMs: 1_000_000 }
    expect(decideEnd(seen, { completionGraceMs: 0, stallMs: 0 })).toBeNull()
  })
})

describe('what the supervisor sees', () => {
  const supervisor = buildSupervisor()
  let rig: Rig

  beforeEach(() => {
    rig = supervisor.open()
  })
  afterEach(() => rig.close())
  afterAll(() => supervisor.remove())

  test('a cancel through the control file', async () => {
    const request = { ...rig.request, argv: shell('touch up; sleep 600') }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    rig.executor.cancel(request)
    expect(await rig.executor.watch(request)).toMatchObject({
      kind: 'ended',
      report: { reason: 'cancelled', signal: 'SIGTERM' },
    })
  })

  test('a control file that asks for nothing known', async () => {
    writeFileSync(join(rig.request.directory, 'control'), '{"action": "dance"}')
    expect(await rig.run({ argv: shell('sleep 0.6; exit 5') })).toMatchObject({
      reason: 'exited',
      exitCode: 5,
    })
  })

  test('a signal to itself', async () => {
    const request = { ...rig.request, argv: shell('touch up; sleep 600') }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    process.kill(rig.started()?.supervisor.pid ?? Number.NaN, 'SIGTERM')
    expect(await rig.executor.watch(request)).toMatchObject({ report: { reason: 'signal' } })
    expect(rig.processes()).toEqual([])
  })

  test('the deadline, by a clock shared between processes', async () => {
    await rig.close()
    const folder = supervisor.open()
    const clock = createSharedClock(folder.root)
    rig = supervisor.open({ environment: { PATH: process.env['PATH'] ?? '', ...clock.env } })
    const hour = 3_600_000
    const request = { ...rig.request, argv: shell('touch up; sleep 600'), timeoutMs: hour }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    clock.advance(hour)
    expect(await rig.executor.watch(request)).toMatchObject({ report: { reason: 'deadline' } })
    await folder.close()
  })

  test('a worker with a result that still does something is left alone', async () => {
    const script = (work: string): string =>
      `mkdir deep; ${RESULT}; for n in $(seq 20); do ${work}; sleep 0.1; done; exit 4`
    const reports = await runAll(
      { completionGraceMs: 1000 },
      {
        prints: script('echo x'),
        'works in its tree': script('date +%N > deep/file'),
        'works on its result': script(RESULT),
      },
    )
    expect(reports).toEqual({
      prints: 'exited 4',
      'works in its tree': 'exited 4',
      'works on its result': 'exited 4',
    })
  })

  test('what is no success result starts no completion grace', async () => {
    const script = (result: string): string => `${result}; sleep 1; exit 4`
    const reports = await runAll(
      { completionGraceMs: 300 },
      {
        'no result': script('true'),
        'a failure': script(`echo '{"status": "failure"}' > worker-result.json`),
        'half a result': script(`echo '{"status": "succ' > worker-result.json`),
        'a link to a result': script(
          `${RESULT}; mv worker-result.json r; ln -s r worker-result.json`,
        ),
        'a FIFO': script('mkfifo worker-result.json'),
        'a folder': script('mkdir worker-result.json'),
      },
    )
    expect(new Set(Object.values(reports))).toEqual(new Set(['exited 4']))
  })

  test('a worker without output and change', async () => {
    const script = 'for n in 1 2 3 4 5; do echo x; sleep 0.1; done; sleep 600'
    const report = await rig.run({ argv: shell(script), stallMs: 600 })
    expect(report).toMatchObject({ reason: 'stalled' })
    expect(rig.transcript()).toBe('x\n'.repeat(5))
  })

  test('a silent worker that changes its tree has not stalled', async () => {
    const script = 'for n in $(seq 20); do touch file; sleep 0.1; done; exit 4'
    expect(await rig.run({ argv: shell(script), stallMs: 1000 })).toMatchObject({
      reason: 'exited',
      exitCode: 4,
    })
  })

  /** Runs several workers at once, each in a rig of its own; tells how each ended. */
  async function runAll(
    change: Partial<LaunchRequest>,
    scripts: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    const runs = Object.entries(scripts).map(async ([name, script]) => {
      const own = supervisor.open()
      const { reason, exitCode } = await own.run({ ...change, argv: shell(script) })
      await own.close()
      return [name, `${reason} ${exitCode}`] as const
    })
    return Object.fromEntries(await Promise.all(runs))
  }
})

describe('ending processes', () => {
  const supervisor = buildSupervisor()
  let rig: Rig

  beforeEach(() => {
    rig = supervisor.open()
  })
  afterEach(() => rig.close())
  afterAll(() => supervisor.remove())

  describe('how a worker is ended', () => {
    test('one that cleans up on TERM is given the time', async () => {
      const script =
        "trap 'echo cleaned > note; exit 9' TERM; touch up; while :; do sleep 0.05; done"
      const report = await rig.run({ argv: shell(script), timeoutMs: 500 })
      expect(report).toMatchObject({ reason: 'deadline', exitCode: 9, signal: null })
      expect(rig.read('note')).toBe('cleaned\n')
    })

    test('TERM comes once to each process', async () => {
      const script = "trap 'echo term >> note' TERM; touch up; while :; do sleep 0.05; done"
      await rig.run({ argv: shell(script), timeoutMs: 500 })
      expect(rig.read('note')).toBe('term\n')
    })
  })

  describe('what cannot be ended', () => {
    /** A tree whose processes survive everything, and a clock that is as fast as it is looked at. */
    function immortals(pids: readonly number[]): { tree: ProcessTree; signals: string[] } {
      const signals: string[] = []
      const tree: ProcessTree = {
        living: () => pids.map((pid) => ({ pid, startTicks: 1, bootId: 'b', session: pid })),
        signal: ({ pid }, signal) => signals.push(`${signal} ${pid}`),
        killGroup: () => {},
        reap: () => {},
        isEmpty: () => pids.length === 0,
      }
      return { tree, signals }
    }

    test('is reported after the bound, the worker included', async () => {
      let now = 0
      const clock = {
        now: () => (now += 1),
        sleep: (ms: number) => {
          now += ms
          return Promise.resolve()
        },
      }
      const { tree, signals } = immortals([10, 11])
      const ended = await endProcesses({ clock, tree, workerPid: 10 })
      expect(ended).toEqual({ descendants: 1, unkillable: [10, 11] })
      expect(now).toBeGreaterThan(LIMITS.termGraceMs + LIMITS.killBoundMs)
      expect(signals.slice(0, 4)).toEqual(['SIGTERM 10', 'SIGTERM 11', 'SIGKILL 10', 'SIGKILL 11'])
    })
  })
})
