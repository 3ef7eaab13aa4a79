import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { classifyEnd } from '../../daemon/core/classify-end.ts'
import type { LaunchRequest, SupervisionEnd } from '../../daemon/core/executor.ts'
import { type ExitReport, formatRunFile } from '../../daemon/core/supervision-files.ts'
import { reapRun } from '../../daemon/supervision/reap-run.ts'
import { watchSupervisor } from '../../daemon/supervision/watch-supervisor.ts'
import { systemClock } from '../../daemon/sys/clock.ts'
import { isLocked, tryLock } from '../../daemon/sys/kernel-lock.ts'
import { identifyProcess } from '../../daemon/sys/process-identity.ts'
import { spawnDetached } from '../../daemon/sys/spawn-detached.ts'
import { actorsOf, bundleFixture, waitUntil } from '../support/processes.ts'
import { buildSupervisor, type Rig, reportOf, rogue, shell } from '../support/supervisor-rig.ts'

describe('runs on a trusted host', () => {
  const supervisor = buildSupervisor()
  const launcher = bundleFixture('daemon-actor')
  const runners = actorsOf(launcher.path)
  let rig: Rig

  beforeEach(() => {
    rig = supervisor.open()
  })
  afterEach(async () => {
    await runners.endAll()
    await rig.close()
  })
  afterAll(() => {
    supervisor.remove()
    launcher.remove()
  })

  const lockPath = (name: 'sup.lock' | 'tree.lock'): string => join(rig.request.directory, name)

  /** Launches a run and waits until its worker has made the file `up`. */
  async function launchUntilUp(
    argv: LaunchRequest['argv'],
    change: Partial<LaunchRequest> = {},
  ): Promise<LaunchRequest> {
    const request = { ...rig.request, ...change, argv }
    await rig.executor.launch(request)
    await waitUntil('the worker is up', () => rig.read('up') !== null)
    await waitUntil('the worker is recorded', () => rig.started()?.worker)
    return request
  }

  function killSupervisorProcess(): void {
    process.kill(rig.started()?.supervisor.pid ?? Number.NaN, 'SIGKILL')
  }

  describe('who can launch a run', () => {
    test('nobody while a supervisor lives', async () => {
      const request = await launchUntilUp(shell('echo once >> count; touch up; sleep 600'))
      expect(await rig.executor.launch(request)).toEqual({ kind: 'already-launched' })
      rig.executor.cancel(request)
      await rig.executor.watch(request)
      expect(rig.read('count')).toBe('once\n')
    })

    test('nobody after it was started, whatever became of it', async () => {
      await rig.run({ argv: shell('echo once >> count') })
      expect(await rig.executor.launch(rig.request)).toEqual({ kind: 'already-launched' })
      rmSync(join(rig.request.directory, 'exit.json'))
      expect(await rig.executor.launch(rig.request)).toEqual({ kind: 'already-launched' })
      expect(rig.read('count')).toBe('once\n')
    })

    test('anybody after a supervisor that refused, and the run looks alive without a gap', async () => {
      mkdirSync(rig.request.transcriptPath)
      await rig.executor.launch(rig.request)
      expect(await rig.executor.watch(rig.request)).toEqual({
        kind: 'vanished',
        launched: true,
        workerStarted: false,
      })
      rmSync(rig.request.transcriptPath, { recursive: true })
      expect(await rig.run({ argv: shell('exit 0') })).toMatchObject({
        reason: 'exited',
        exitCode: 0,
      })
    })

    test('a supervisor refuses a run of which a process is left', async () => {
      const held = tryLock(lockPath('tree.lock'))
      const request = { ...rig.request, argv: shell('touch up') }
      await rig.executor.launch(request)
      expect(await rig.executor.watch(request)).toEqual({
        kind: 'vanished',
        launched: true,
        workerStarted: false,
      })
      held?.close()
      expect(rig.read('up')).toBeNull()
      expect(readFileSync(join(rig.root, 'supervisor.log'), 'utf8')).toMatch(/still alive/)
    })
  })

  test.each([
    ['half an environment', '{"PATH": "/usr/b'],
    ['an environment that is none', '["PATH"]'],
    ['no environment at all', ''],
  ])('%s, as a dying runner leaves it, starts nothing', async (_, text) => {
    const request = { ...rig.request, argv: shell('touch up') }
    // Once as a runner does it, for launch.json; the supervisor refuses because of the held tree lock.
    const held = tryLock(lockPath('tree.lock'))
    await rig.executor.launch(request)
    await rig.executor.watch(request)
    held?.close()
    const lock = tryLock(lockPath('sup.lock'))
    await spawnDetached({
      argv: [process.execPath, supervisor.path, request.directory],
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', lock?.fd ?? 'ignore'],
      input: { fd: 4, text },
    })
    lock?.close()
    expect(await rig.executor.watch(request)).toEqual({
      kind: 'vanished',
      launched: true,
      workerStarted: false,
    })
    expect(rig.read('up')).toBeNull()
  })

  describe('who can watch a run', () => {
    test('an adopter, after the runner was killed: supervisor and worker go on', async () => {
      const request = {
        ...rig.request,
        argv: shell('touch up; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3'),
      }
      const requestPath = join(rig.root, 'request.json')
      writeFileSync(requestPath, JSON.stringify(request))
      const runner = runners.start(['launch-run', requestPath, supervisor.path])
      await waitUntil('the worker is up', () => rig.read('up') !== null)
      await runner.kill()
      expect(isLocked(lockPath('sup.lock'))).toBe(true)
      writeFileSync(rig.inTree('go'), '')
      const report = reportOf(await rig.executor.watch(request), rig.root)
      expect(report).toMatchObject({ reason: 'exited', exitCode: 3 })
      expect(rig.transcript()).toBe('done\n')
    })

    test('several at once, and each is told the same', async () => {
      const request = await launchUntilUp(shell('touch up; exit 6'))
      const [one, two] = await Promise.all([
        rig.executor.watch(request),
        rig.executor.watch(request),
      ])
      expect(reportOf(one, rig.root).exitCode).toBe(6)
      expect(two).toEqual(one)
    })

    test('a watcher beats at the start and can leave; the run goes on', async () => {
      const request = await launchUntilUp(shell('touch up; sleep 600'))
      const leave = new AbortController()
      let beats = 0
      const onHeartbeat = (): void => {
        beats += 1
        leave.abort()
      }
      expect(await rig.executor.watch(request, { onHeartbeat, signal: leave.signal })).toEqual({
        kind: 'unwatched',
      })
      expect(beats).toBe(1)
      expect(isLocked(lockPath('sup.lock'))).toBe(true)
      rig.executor.cancel(request)
      await rig.executor.watch(request)
    })

    test('a report of an unknown format is a fault, not an absence', async () => {
      writeFileSync(
        join(rig.request.directory, 'exit.json'),
        '{"format":"caduceus-exit","version":2}',
      )
      await expect(rig.executor.watch(rig.request)).rejects.toMatchObject({ code: 'sys/io' })
    })
  })

  describe('what a killed supervisor leaves', () => {
    /** A program that notes its pid and sleeps, as part of a shell script. */
    const sleeper = (note: string): string => `/bin/sh -c 'echo $$ > ${note}; exec sleep 600'`

    test.each<[string, (sleeper: string) => string]>([
      ['a worker', (sleeper) => `touch up; exec ${sleeper}`],
      ['a worker that closed the tree lock', (sleeper) => `touch up; exec ${sleeper} 3>&-`],
      ['a daemon', (sleeper) => `(setsid ${sleeper} &)`],
      ['what has only the run id', (sleeper) => `(cd /; setsid ${sleeper} 3>&- &)`],
      ['what has only its folder', (sleeper) => `(env -i setsid ${sleeper} 3>&- &)`],
      ['what has only the lock', (sleeper) => `(cd /; env -i setsid ${sleeper} &)`],
      ['what has only the session', (sleeper) => `(cd /; env -i ${sleeper} 3>&- &)`],
    ])('%s is swept', async (_, script) => {
      const line = script(sleeper(rig.inTree('survivor')))
      const request = await launchUntilUp(shell(`${line}; touch up; exec sleep 600`))
      const pid = await waitUntil('the survivor is up', () => Number(rig.read('survivor')) || null)
      killSupervisorProcess()
      expect(await rig.executor.watch(request)).toEqual({
        kind: 'vanished',
        launched: true,
        workerStarted: true,
      })
      expect(identifyProcess(pid)).not.toBeNull()
      expect(await rig.executor.reap(request)).toMatchObject({ kind: 'clear' })
      expect(identifyProcess(pid)).toBeNull()
      expect(isLocked(lockPath('tree.lock'))).toBe(false)
    })

    test('a process in a folder too deep to be named hinders no sweep', async () => {
      const script = `${rogue('works-too-deep', '30', '200').join(' ')} & touch up; exec sleep 600`
      const request = await launchUntilUp(shell(script))
      await waitUntil('it is down there', () => rig.processes().some(isTooDeep))
      killSupervisorProcess()
      await rig.executor.watch(request)
      expect(await rig.executor.reap(request)).toMatchObject({ kind: 'clear' })
      expect(rig.processes()).toEqual([])
    })

    test('the tree lock stays held by the worker until it is swept', async () => {
      const request = await launchUntilUp(shell('touch up; sleep 600'))
      killSupervisorProcess()
      await waitUntil('the supervisor is gone', () => !isLocked(lockPath('sup.lock')))
      expect(isLocked(lockPath('tree.lock'))).toBe(true)
      expect(await rig.executor.reap(request)).toMatchObject({ kind: 'clear' })
      expect(isLocked(lockPath('tree.lock'))).toBe(false)
    })

    test('nothing is swept while a supervisor keeps its lock', async () => {
      const request = await launchUntilUp(shell('touch up; sleep 600'))
      expect(await rig.executor.reap(request)).toEqual({ kind: 'unkillable', pids: [] })
      const pid = rig.started()?.worker?.pid ?? Number.NaN
      expect(identifyProcess(pid)).not.toBeNull()
      rig.executor.cancel(request)
      await rig.executor.watch(request)
      expect(await rig.executor.reap(request)).toEqual({ kind: 'clear', killed: 0 })
    })

    test('what it could not end and reported is told until its lock is free, and swept then', async () => {
      const request = await launchUntilUp(shell('touch up; sleep 600'))
      const pid = rig.started()?.worker?.pid ?? Number.NaN
      killSupervisorProcess()
      await waitUntil('the supervisor is gone', () => !isLocked(lockPath('sup.lock')))
      const report: ExitReport = {
        endedAt: new Date().toISOString(),
        reason: 'deadline',
        detail: null,
        exitCode: null,
        signal: null,
        transcriptBytes: 0,
        transcriptTruncated: false,
        descendantsKilled: 0,
        unkillable: [pid],
      }
      writeFileSync(join(request.directory, 'exit.json'), formatRunFile('exit', report))
      const lock = tryLock(lockPath('sup.lock'))
      expect(reportOf(await rig.executor.watch(request), rig.root)).toMatchObject(report)
      expect(await rig.executor.reap(request)).toEqual({ kind: 'unkillable', pids: [pid] })
      expect(identifyProcess(pid)).not.toBeNull()
      lock?.close()
      expect(await rig.executor.reap(request)).toMatchObject({ kind: 'clear' })
      expect(identifyProcess(pid)).toBeNull()
    })

    test('a lock nobody can be found to hold is reported, not waited for for ever', async () => {
      // Held by this very process, which a sweep spares.
      const held = tryLock(lockPath('tree.lock'))
      let now = 0
      const impatient = { now: () => (now += 500), sleep: () => systemClock.sleep(1) }
      expect(await reapRun(impatient, rig.request)).toEqual({ kind: 'unkillable', pids: [] })
      held?.close()
    })
  })

  describe('an overdue supervisor', () => {
    test('a stopped one is told as overdue, killed, and swept after', async () => {
      const request = await launchUntilUp(shell('touch up; sleep 600'), { timeoutMs: 1000 })
      process.kill(rig.started()?.supervisor.pid ?? Number.NaN, 'SIGSTOP')
      let ahead = 0
      const clock = { now: () => Date.now() + ahead, sleep: () => systemClock.sleep(1) }
      const watching = watchSupervisor(clock, request)
      ahead = 3_600_000
      expect(await watching).toEqual({ kind: 'overdue' })
      expect(await rig.executor.killSupervisor(request)).toBe(true)
      expect(await rig.executor.watch(request)).toEqual({
        kind: 'vanished',
        launched: true,
        workerStarted: true,
      })
      expect(await rig.executor.reap(request)).toMatchObject({ kind: 'clear' })
    })
  })

  function isTooDeep(pid: number): boolean {
    try {
      readlinkSync(`/proc/${pid}/cwd`)
      return false
    } catch (error) {
      return String(error).includes('ENAMETOOLONG')
    }
  }
})

describe('a supervisor that dies anywhere', () => {
  // P§2: a supervisor may die at any moment. Here it dies right before and right after each of its calls
  // that could leave a trace, one run per moment, from its first to its last.

  const supervisor = buildSupervisor()
  const notes = mkdtempSync(join(tmpdir(), 'supervisor-crash-'))
  afterAll(() => {
    supervisor.remove()
    rmSync(notes, { recursive: true })
  })

  const PRELOAD = new URL('../support/crash-at-call.mjs', import.meta.url).href
  const AT_ONCE = 4
  const MOST_CALLS = 400

  type Seen = Readonly<{
    end: SupervisionEnd
    said: string
    isStarted: boolean
    hasRun: boolean
    isOver: boolean
  }>

  test('wherever a supervisor dies: without started.json no worker ever ran, and nothing is left', async () => {
    const seen: Seen[] = []
    while (!seen.some(({ isOver }) => isOver) && seen.length < MOST_CALLS) {
      const batch = Array.from({ length: AT_ONCE }, (_, n) => dieAtCall((seen.length + n) / 2 + 1))
      seen.push(...(await Promise.all(batch)))
    }
    expect(seen.filter(({ isOver, end }) => isOver && end.kind !== 'ended')).toEqual([])
    const died = seen.filter(({ isOver }) => !isOver)
    expect(died.length).toBeGreaterThanOrEqual(40)
    expect(died.filter(({ isStarted, hasRun }) => hasRun && !isStarted)).toEqual([])
    // The walk covers all three states: before the record, between the record and the worker, after it.
    const states = new Set(died.map(({ isStarted, hasRun }) => `${isStarted} ${hasRun}`))
    expect([...states].sort()).toEqual(['false false', 'true false', 'true true'])
  }, 120_000)

  async function dieAtCall(n: number): Promise<Seen> {
    const endedByItself = join(notes, String(n))
    const own = supervisor.open({
      environment: {
        PATH: process.env['PATH'] ?? '',
        NODE_OPTIONS: `--import=${PRELOAD}`,
        TEST_CRASH_AT_CALL: String(n),
        TEST_CALL_LOG: endedByItself,
      },
    })
    const request = { ...own.request, argv: shell('echo ran > canary; echo output') }
    await own.executor.launch(request)
    const end = await own.executor.watch(request)
    if (end.kind === 'vanished') {
      expect(end.workerStarted).toBe(own.started() !== null)
      expect(await own.executor.reap(request)).toMatchObject({ kind: 'clear' })
    }
    expect(isLocked(join(request.directory, 'tree.lock'))).toBe(false)
    expect(own.processes()).toEqual([])
    const seen = {
      end,
      said: readFileSync(join(own.root, 'supervisor.log'), 'utf8'),
      isStarted: own.started() !== null,
      hasRun: own.read('canary') !== null,
      isOver: existsSync(endedByItself),
    }
    await own.close()
    return seen
  }
})

describe('a run on a full disk', () => {
  // A real file system of 512 KiB, mounted where only the tests see it. Where neither this user nor root may
  // mount, a limit on the size of files says no in its place: the system's answer is another one then.
  const supervisor = buildSupervisor()
  let disk: Disk
  let rig: Rig

  beforeEach(async () => {
    disk = await openDisk()
  })
  afterEach(async () => {
    await rig.close()
    await disk.close()
  })
  afterAll(() => supervisor.remove())

  /** A supervisor whose own files grow no more, where there is no disk to fill. */
  const limited = (blocks: number): readonly [string, ...string[]] => {
    const program = [process.execPath, supervisor.path] as const
    if (disk.isReal) return program
    return ['/bin/sh', '-c', `ulimit -f ${blocks}; exec "$@"`, 'sh', ...program]
  }
  const program = (argv: readonly [string, ...string[]]) => ({
    argv,
    logPath: join(disk.outside, 'supervisor.log'),
  })

  /** Nothing of a failed run keeps the next one from being kept, once there is room. */
  async function expectNextRunIsKept(): Promise<void> {
    const next = supervisor.open()
    expect(await next.run({ argv: shell('exit 7') })).toMatchObject({ exitCode: 7 })
    await next.close()
  }

  test('its output fills the disk: it is ended, and the end of the output makes room for the report', async () => {
    rig = supervisor.open(program(limited(8)), disk.folder)
    const change = { argv: shell('exec yes'), transcriptMaxBytes: 100_000_000 }
    const transcriptPath = join(rig.root, 'run.log')
    const report = await rig.run({ ...change, transcriptPath })
    expect(report).toMatchObject({
      reason: 'transcript-failed',
      detail: disk.error,
      transcriptTruncated: true,
      unkillable: [],
    })
    expect(report.transcriptBytes).toBeGreaterThan(1000)
    const facts = { runId: '', program: '', transcriptPath: '/t', timeoutMs: 1, stallMs: 0 }
    expect(classifyEnd({ kind: 'ended', report }, facts)).toMatchObject({
      kind: 'failed',
      fault: {
        code: 'worker/transcript-failed',
        details: { transcript: '/t', reason: disk.error },
      },
    })
    await expectNextRunIsKept()
  })

  test('the disk is full before it begins: no worker is started, and the reason is told', async () => {
    const fill = `cat /dev/zero >"${disk.folder}/filler" 2>/dev/null; exec "$@"`
    const filled = ['/bin/sh', '-c', fill, 'sh', process.execPath, supervisor.path] as const
    rig = supervisor.open(program(disk.isReal ? filled : limited(0)), disk.folder)
    const request = { ...rig.request, argv: shell('touch ran') }
    await rig.executor.launch(request)
    const end = await rig.executor.watch(request)
    expect(end).toEqual({ kind: 'vanished', launched: true, workerStarted: false })
    expect(rig.read('ran')).toBeNull()
    const said = readFileSync(join(disk.outside, 'supervisor.log'), 'utf8')
    // The limit is on the log, too.
    expect(said).toContain(disk.isReal ? disk.error : '')
    await expectNextRunIsKept()
  })

  test('its worker fills the disk: the report waits for room, and the lock says so meanwhile', async () => {
    rig = supervisor.open(program([process.execPath, supervisor.path]), disk.folder)
    // A folder in the place of the report stands for the full disk where there is none.
    const deed = disk.isReal ? 'cat /dev/zero >filler' : 'mkdir ../run/exit.json'
    // By itself: on a disk that is full so soon the supervisor may not get to record it.
    const pidFile = join(disk.outside, 'worker.pid')
    const argv = shell(`echo $$ >'${pidFile}'; ${deed}; exit 5`)
    const transcriptPath = join(disk.outside, 'run.log')
    const request = { ...rig.request, argv, transcriptPath }
    await rig.executor.launch(request)
    const pid = await waitUntil(
      'the worker has begun',
      () => existsSync(pidFile) && Number(readFileSync(pidFile)),
    )
    await waitUntil('the worker has ended', () => identifyProcess(pid) === null)
    expect(isLocked(join(request.directory, 'sup.lock'))).toBe(true)
    rmSync(disk.isReal ? rig.inTree('filler') : join(request.directory, 'exit.json'), {
      recursive: true,
    })
    const report = reportOf(await rig.executor.watch(request), rig.root)
    expect(report).toMatchObject({ reason: 'exited', exitCode: 5, unkillable: [] })
    await expectNextRunIsKept()
  })
})

/** A small file system of its own, or a plain folder. */
type Disk = Readonly<{
  folder: string
  /** A folder with room. */
  outside: string
  isReal: boolean
  /** What the system says when there is no room. */
  error: string
  close: () => Promise<void>
}>

/** As root of a user namespace of our own, which any user may be on most systems; then as root itself. */
const WAYS_TO_MOUNT = [['-rm'], ['-m']] as const

async function openDisk(): Promise<Disk> {
  const outside = mkdtempSync(join(tmpdir(), 'full-disk-'))
  const point = join(outside, 'disk')
  mkdirSync(point)
  for (const flags of WAYS_TO_MOUNT) {
    const script = 'mount -t tmpfs -o size=512k tmpfs "$1" && echo mounted && exec sleep 600'
    const holder = spawn('unshare', [...flags, '/bin/sh', '-c', script, 'sh', point], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = once(holder, 'close').catch(() => {})
    const [said] = await Promise.race([once(holder.stdout, 'data'), ended.then(() => [''])])
    const close = async (): Promise<void> => {
      holder.kill('SIGKILL')
      await ended
      rmSync(outside, { recursive: true })
    }
    const folder = `/proc/${holder.pid}/root${point}`
    if (String(said).includes('mounted'))
      return { folder, outside, isReal: true, error: 'ENOSPC', close }
    await ended
  }
  const close = (): Promise<void> => Promise.resolve(rmSync(outside, { recursive: true }))
  return { folder: point, outside, isReal: false, error: 'EFBIG', close }
}
