import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { getEventListeners, once } from 'node:events'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { findProgram } from '../../daemon/sys/find-program.ts'
import {
  childrenOf,
  currentBootId,
  cwdOf,
  environmentOf,
  identifyProcess,
  isAlive,
  listProcesses,
  ownIdentity,
  type ProcessIdentity,
} from '../../daemon/sys/process-identity.ts'
import { psSource } from '../../daemon/sys/ps.ts'
import { type ProcessRequest, runProcess } from '../../daemon/sys/run-process.ts'
import { spawnDetached } from '../../daemon/sys/spawn-detached.ts'
import { killIdentity, killSession } from '../../daemon/sys/terminate.ts'
import { actorsOf, bundleFixture, commandLineOf, waitUntil } from '../support/processes.ts'

const env = { PATH: '/usr/bin:/bin' }

describe('identity of processes', () => {
  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  let sleepers: ChildProcess[] = []

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
  })

  afterEach(async () => {
    for (const { pid } of sleepers) killSession(reusedLeader(pid ?? 0))
    await Promise.all(sleepers.map(ended))
    sleepers = []
    await actors.endAll()
  })

  afterAll(() => program.remove())

  const ended = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  /** A program in a session of its own. */
  function start(script = 'sleep 60'): ChildProcess & { pid: number } {
    const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: 'ignore' })
    sleepers.push(child)
    return Object.assign(child, { pid: child.pid ?? 0 })
  }

  function identityOf(pid: number): ProcessIdentity {
    const identity = identifyProcess(pid)
    assert.ok(identity, 'no such process')
    return identity
  }

  describe('identity', () => {
    test('it tells one process from another, and from the same pid at another time or boot', async () => {
      const child = start()
      const identity = identityOf(child.pid)
      expect(identity).toMatchObject({
        pid: child.pid,
        session: child.pid,
        bootId: currentBootId(),
      })
      expect(isAlive(identity)).toBe(true)
      expect(isAlive({ ...identity, startTicks: identity.startTicks - 1 })).toBe(false)
      expect(isAlive({ ...identity, bootId: 'another boot' })).toBe(false)
      child.kill('SIGKILL')
      await ended(child)
      expect(isAlive(identity)).toBe(false)
      expect(identifyProcess(child.pid)).toBeNull()
    })

    test('our own is known, and later ones started later', () => {
      const own = ownIdentity()
      expect(own.pid).toBe(process.pid)
      expect(identityOf(start().pid).startTicks).toBeGreaterThanOrEqual(own.startTicks)
    })

    test('a name with spaces and parentheses does not confuse it', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'odd-name-'))
      const program = join(folder, ') S 1 (x 2')
      copyFileSync('/bin/sleep', program)
      const child = spawn(program, ['60'], { detached: true, stdio: 'ignore' })
      sleepers.push(child)
      const pid = child.pid ?? 0
      const [odd, plain] = [identityOf(pid), identityOf(start().pid)]
      expect(odd).toMatchObject({ pid, session: pid })
      expect(Math.abs(odd.startTicks - plain.startTicks)).toBeLessThan(1000)
      rmSync(folder, { recursive: true })
    })

    test('an ended process that nobody collected is not alive', async () => {
      // The shell becomes a sleep that never waits for its first child.
      const parent = start('true & exec sleep 60')
      const zombie = await waitUntil('a zombie', () =>
        listProcesses().find(({ ppid, isZombie }) => ppid === parent.pid && isZombie),
      )
      expect(identifyProcess(zombie.pid)).toBeNull()
      expect(childrenOf(parent.pid)).toEqual([zombie.pid])
    })
  })

  describe('what the system lists', () => {
    test('children, environment and folder of a process are told', async () => {
      const parent = spawn('/bin/sh', ['-c', 'sleep 60 & sleep 60'], {
        detached: true,
        stdio: 'ignore',
        cwd: '/usr',
        env: { PATH: '/bin', ODD: 'a=b\nc' },
      })
      sleepers.push(parent)
      const pid = parent.pid ?? 0
      const children = await waitUntil('two children', () => {
        const found = childrenOf(pid)
        return found.length === 2 && found
      })
      const listed = listProcesses().filter(({ ppid }) => ppid === pid)
      expect(new Set(listed.map((entry) => entry.pid))).toEqual(new Set(children))
      expect(listed.map(({ session }) => session)).toEqual([pid, pid])
      expect(environmentOf(pid)).toEqual({ PATH: '/bin', ODD: 'a=b\nc' })
      expect(cwdOf(pid)).toBe('/usr')
    })

    test('a process that does not exist has nothing', () => {
      const pid = 2 ** 22 + 1
      expect([identifyProcess(pid), environmentOf(pid), cwdOf(pid)]).toEqual([null, null, null])
      expect(childrenOf(pid)).toEqual([])
    })

    test('the portable source agrees with proc on who is there', () => {
      const child = start()
      const entry = psSource.entry(child.pid)
      expect(entry).toMatchObject({ pid: child.pid, ppid: process.pid, session: child.pid })
      expect(Math.abs((entry?.startTicks ?? 0) * 1000 - Date.now())).toBeLessThan(60_000)
      expect(psSource.list().map(({ pid }) => pid)).toContain(child.pid)
      expect(psSource.entry(2 ** 22 + 1)).toBeNull()
    })
  })

  describe('ending', () => {
    test('a signal reaches the process that is meant', async () => {
      const child = start('trap "exit 7" TERM; while :; do sleep 0.05; done')
      const identity = identityOf(child.pid)
      await waitUntil('the trap is set', () => childrenOf(child.pid).length > 0)
      expect(killIdentity(identity, 'SIGTERM')).toBe(true)
      await ended(child)
      expect(child.exitCode).toBe(7)
      expect(killIdentity(identity, 'SIGTERM')).toBe(false)
    })

    test('a pid that means another process by now is never hit', async () => {
      const child = start()
      const identity = identityOf(child.pid)
      expect(killIdentity({ ...identity, startTicks: identity.startTicks - 1 }, 'SIGKILL')).toBe(
        false,
      )
      expect(killIdentity({ ...identity, bootId: 'another boot' }, 'SIGKILL')).toBe(false)
      expect(killSession({ ...identity, startTicks: identity.startTicks - 1 })).toBe(0)
      expect(killSession({ ...identity, bootId: 'another boot' })).toBe(0)
      expect(killIdentity({ ...identity, pid: 1 }, 'SIGKILL')).toBe(false)
      expect(isAlive(identity)).toBe(true)
    })

    test('a whole session ends, its leader gone or not, and no other session', async () => {
      const bystander = identityOf(start().pid)
      const leader = start('(sleep 60 & sleep 60; true) & sleep 60 & sleep 60; true')
      const identity = identityOf(leader.pid)
      const members = (): number[] =>
        listProcesses()
          .filter(({ session, isZombie }) => session === leader.pid && !isZombie)
          .map(({ pid }) => pid)
      await waitUntil('all are there', () => members().length === 6)
      leader.kill('SIGKILL')
      await ended(leader)
      expect(killSession(identity)).toBe(5)
      await waitUntil('the session is empty', () => members().length === 0)
      expect(killSession(identity)).toBe(0)
      expect(isAlive(bystander)).toBe(true)
    })

    test('a session that goes on forking while it is killed ends too', async () => {
      // Bounded, so that a broken build cannot flood the machine.
      const fork = 'i=0; while [ $i -lt 150 ]; do sleep 20 & i=$((i+1)); done'
      const leader = start(`(${fork}) & (${fork}) & ${fork}; wait`)
      const identity = identityOf(leader.pid)
      const members = (): number =>
        listProcesses().filter((entry) => entry.session === leader.pid && !entry.isZombie).length
      await waitUntil('it has grown', () => members() > 20)
      expect(killSession(identity)).toBeGreaterThan(20)
      await waitUntil('the session is empty', () => members() === 0)
    })

    test('our own session and a recorded member that leads none are handled one by one', async () => {
      const own = ownIdentity()
      expect(killSession({ ...own, pid: own.session, startTicks: -1 })).toBe(0)
      const leader = start('sleep 60 & sleep 60')
      const [first = 0, second = 0] = await waitUntil('two children', () => {
        const found = childrenOf(leader.pid)
        return found.length === 2 && found
      })
      const [hit, spared] = [identityOf(first), identityOf(second)]
      expect(killSession(hit)).toBe(1)
      await waitUntil('it has ended', () => !isAlive(hit))
      expect(isAlive(spared)).toBe(true)
    })
  })

  /** What runProcess has of a collected child: its session, but no start. */
  function reusedLeader(pid: number): ProcessIdentity {
    const startTicks = identifyProcess(pid)?.startTicks ?? -1
    return { pid, session: pid, startTicks, bootId: currentBootId() }
  }
})

describe('a process that is waited for', () => {
  let root: string
  let childrenBefore: number[]

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'run-process-'))
    childrenBefore = childrenOf(process.pid)
  })

  afterEach(async () => {
    rmSync(root, { recursive: true, force: true })
    await waitUntil(
      'no child is left',
      () => childrenOf(process.pid).length <= childrenBefore.length,
    )
  })

  const shell = (
    script: string,
    more: Partial<ProcessRequest> = {},
  ): ReturnType<typeof runProcess> =>
    runProcess({ argv: ['/bin/sh', '-c', script], env, timeoutMs: 20_000, ...more })

  async function timed(pending: Promise<unknown>): Promise<{ value: unknown; ms: number }> {
    const start = performance.now()
    const value = await pending.catch((error: unknown) => error)
    return { value, ms: performance.now() - start }
  }

  /** Processes of a test are told by an argument no other one has. */
  const sleeperOf = (seconds: string): number | null =>
    listProcesses().find(({ pid }) => commandLineOf(pid).join(' ') === `sleep ${seconds}`)?.pid ??
    null

  const isRunning = (seconds: string): boolean => sleeperOf(seconds) !== null

  function openDescriptors(): number {
    return readdirSync(`/proc/${process.pid}/fd`).length
  }

  describe('results', () => {
    test('exit code, both streams and signals are told; a failing code is no fault', async () => {
      expect(await shell('echo out; echo err >&2; exit 3')).toEqual({
        code: 3,
        signal: null,
        stdout: Buffer.from('out\n'),
        stderr: Buffer.from('err\n'),
        truncated: false,
      })
      expect(await shell('kill -9 $$')).toMatchObject({ code: null, signal: 'SIGKILL' })
    })

    test('the environment is exactly the one given, the folder the root unless named', async () => {
      const { stdout } = await runProcess({
        argv: ['/usr/bin/env'],
        env: { A: '1' },
        timeoutMs: 9000,
      })
      expect(stdout.toString()).toBe('A=1\n')
      expect((await shell('pwd')).stdout.toString()).toBe('/\n')
      expect((await shell('pwd', { cwd: root })).stdout.toString()).toBe(`${root}\n`)
    })

    test('arguments arrive as they are, whatever a shell would make of them', async () => {
      const odd = ['-n', '$HOME; rm *', 'a b', '"', '', '🤖']
      const { stdout } = await runProcess({
        argv: ['/usr/bin/printf', '%s\\n', ...odd],
        env,
        timeoutMs: 9000,
      })
      expect(stdout.toString()).toBe(odd.map((word) => `${word}\n`).join(''))
    })

    test('the program leads its own session and has no input unless it is given', async () => {
      const { stdout } = await shell('cat; echo; cut -d" " -f6 /proc/$$/stat; echo $$')
      const [, session, pid] = stdout.toString().split('\n')
      expect(session).toBe(pid)
    })

    test('extra descriptors arrive from 3 on', async () => {
      const { stdout } = await shell('readlink /proc/$$/fd/3', { extraFds: [0] })
      expect(stdout.toString()).not.toBe('')
    })
  })

  describe('input and output', () => {
    test('many megabytes go in and come out unchanged', async () => {
      const input = Buffer.alloc(20 * 1024 ** 2, 'some line of text\n')
      const { stdout, truncated } = await shell('cat', { input, maxOutputBytes: 64 * 1024 ** 2 })
      expect(truncated).toBe(false)
      expect(createHash('sha256').update(stdout).digest('hex')).toBe(
        createHash('sha256').update(input).digest('hex'),
      )
    })

    test('50 MiB of output in small writes are captured in linear time', async () => {
      const bytes = 50 * 1024 ** 2
      const script = `yes 0123456 | head -c ${bytes}`
      const { value, ms } = await timed(shell(script, { maxOutputBytes: bytes }))
      expect(value).toMatchObject({ code: 0, truncated: false, stdout: { length: bytes } })
      expect(ms).toBeLessThan(15_000)
    })

    test('the head is kept and the writer is not held up', async () => {
      const result = await shell('yes | head -c 3000000; echo done >&2')
      expect(result).toMatchObject({ code: 0, truncated: true, stderr: Buffer.from('done\n') })
      expect(result.stdout.length).toBe(32 * 1024)
      const exact = await shell('printf 12345', { maxOutputBytes: 5 })
      expect(exact).toMatchObject({ truncated: false, stdout: Buffer.from('12345') })
      const cut = await shell('printf 123456', { maxOutputBytes: 5 })
      expect(cut).toMatchObject({ truncated: true, stdout: Buffer.from('12345') })
    })

    test('too much output is a fault where that was asked for, and ends the program', async () => {
      const { value, ms } = await timed(shell('yes', { maxOutputBytes: 1000, overflow: 'fault' }))
      expect(value).toMatchObject({ code: 'sys/output-too-large', details: { maxBytes: 1000 } })
      expect(ms).toBeLessThan(10_000)
      const short = shell('printf 123456', { maxOutputBytes: 5, overflow: 'fault' })
      await expect(short).rejects.toMatchObject({ code: 'sys/output-too-large' })
    })

    test('a program that ends without reading its input is no fault', async () => {
      const input = Buffer.alloc(5 * 1024 ** 2)
      expect(await shell('exit 4', { input })).toMatchObject({ code: 4 })
      expect(await shell('exec <&-; echo early', { input })).toMatchObject({ code: 0 })
    })
  })

  describe('the deadline', () => {
    test('ends a program that ignores TERM, and what it started, however the pipes are held', async () => {
      const script = 'trap "" TERM; sleep 61.5 & sleep 61.5'
      const { value, ms } = await timed(shell(script, { timeoutMs: 200 }))
      expect(value).toMatchObject({ code: 'sys/process-timeout', details: { seconds: 0.2 } })
      expect(ms).toBeLessThan(5000)
      await waitUntil('nothing of it is left', () => !isRunning('61.5'))
    })

    test('lets a program that heeds TERM leave in order', async () => {
      const mark = join(root, 'tidied')
      const script = `trap 'echo > ${mark}; exit' TERM; sleep 62.5 & wait`
      await expect(shell(script, { timeoutMs: 200 })).rejects.toMatchObject({
        code: 'sys/process-timeout',
      })
      expect(readdirSync(root)).toEqual(['tidied'])
      await waitUntil('nothing of it is left', () => !isRunning('62.5'))
    })

    test('settles although a descendant in another session keeps the pipes', async () => {
      const script = 'setsid sleep 63.25 & sleep 63.5'
      const { value, ms } = await timed(shell(script, { timeoutMs: 200 }))
      expect(value).toMatchObject({ code: 'sys/process-timeout' })
      expect(ms).toBeLessThan(5000)
      process.kill(sleeperOf('63.25') ?? 0, 'SIGKILL')
    })

    test('a descendant that holds the pipes of an ended program costs a second, then it is ended', async () => {
      const { value, ms } = await timed(shell('sleep 64.5 & echo told'))
      expect(value).toMatchObject({ code: 0, stdout: Buffer.from('told\n') })
      expect(ms).toBeLessThan(5000)
      await waitUntil('nothing of it is left', () => !isRunning('64.5'))
    })
  })

  describe('an abort', () => {
    test('ends the program at once, and needs no program when it came before', async () => {
      const controller = new AbortController()
      const running = shell('sleep 65.5', { signal: controller.signal })
      await waitUntil('it runs', () => isRunning('65.5'))
      controller.abort()
      await expect(running).rejects.toMatchObject({ code: 'sys/process-aborted' })
      await waitUntil('nothing of it is left', () => !isRunning('65.5'))
      const mark = join(root, 'never')
      const refused = shell(`echo > ${mark}`, { signal: controller.signal })
      await expect(refused).rejects.toMatchObject({ code: 'sys/process-aborted' })
      expect(readdirSync(root)).toEqual([])
    })

    test('no listener, timer or descriptor is left, however it ended', async () => {
      const { signal } = new AbortController()
      const listeners = (): number => getEventListeners(signal, 'abort').length
      const descriptors = openDescriptors()
      await shell('true', { signal })
      expect(listeners()).toBe(0)
      const late = timed(shell('sleep 66.5', { signal, timeoutMs: 100 }))
      await waitUntil('it listens', () => listeners() === 1)
      await late
      await timed(runProcess({ argv: ['/absent'], env, timeoutMs: 1000, signal }))
      expect(listeners()).toBe(0)
      await waitUntil('descriptors are closed', () => openDescriptors() <= descriptors)
      expect(process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap')).toEqual([])
    })
  })

  describe('a failed start', () => {
    test.each([
      ['an absent program', ['/absent/program'], {}, 'not found'],
      ['a name that PATH does not hold', ['no-such-program-here'], {}, 'not found'],
      ['a folder', ['/usr'], {}, 'permission denied'],
      ['an absent folder to work in', ['/bin/true'], { cwd: '/absent' }, 'folder /absent does not'],
      ['endless arguments', ['/bin/true', 'x'.repeat(200_000)], {}, 'too long'],
      ['a NUL byte', ['/bin/true', 'a\0b'], {}, 'null bytes'],
    ] as const)('%s is told as such', async (_, argv, more, reason) => {
      const [program, ...args] = argv
      const running = runProcess({ argv: [program, ...args], env, timeoutMs: 1000, ...more })
      await expect(running).rejects.toMatchObject({
        code: 'sys/spawn-failed',
        details: { program: argv[0], reason: expect.stringContaining(reason) },
      })
    })

    test('a script without permission or without its interpreter is told as such', async () => {
      const script = join(root, 'script')
      writeFileSync(script, '#!/absent/interpreter\n')
      const start = (): ReturnType<typeof runProcess> =>
        runProcess({ argv: [script], env, timeoutMs: 1000 })
      await expect(start()).rejects.toMatchObject({ details: { code: 'EACCES' } })
      chmodSync(script, 0o755)
      await expect(start()).rejects.toThrow('interpreter is missing')
    })
  })

  describe('finding a program', () => {
    test('the first executable file in an absolute folder of PATH wins', () => {
      const [first, second] = [join(root, 'first'), join(root, 'second')]
      mkdirSync(first)
      mkdirSync(join(first, 'tool'))
      mkdirSync(second)
      writeFileSync(join(second, 'tool'), '', { mode: 0o755 })
      writeFileSync(join(root, 'tool'), '', { mode: 0o755 })
      const search = { PATH: `:.:relative:${first}:${second}:${root}` }
      expect(findProgram('tool', search)).toBe(join(second, 'tool'))
      expect(findProgram(join(root, 'tool'), {})).toBe(join(root, 'tool'))
      expect(findProgram('./tool', search)).toBeNull()
      expect(findProgram('absent', search)).toBeNull()
      expect(findProgram('tool', {})).toBeNull()
    })
  })
})

describe('a process that is left alone', () => {
  let program: ReturnType<typeof bundleFixture>
  let actors: ReturnType<typeof actorsOf>
  let root: string
  let output: string

  beforeAll(() => {
    program = bundleFixture('sys-actor')
    actors = actorsOf(program.path)
  })

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'spawn-detached-'))
    output = join(root, 'output')
  })

  afterEach(async () => {
    await actors.endAll()
    rmSync(root, { recursive: true, force: true })
  })

  afterAll(() => program.remove())

  describe('a detached program', () => {
    test('leads its own session in the root folder, with the descriptors it was given', async () => {
      const fd = openSync(output, 'a')
      const script = 'echo out; echo err >&2; echo three >&3; echo "$PATH"; pwd; sleep 60'
      const { pid } = await spawnDetached({
        argv: ['/bin/sh', '-c', script],
        env,
        stdio: ['ignore', fd, fd, fd],
      })
      closeSync(fd)
      const identity = identifyProcess(pid)
      expect(identity?.session).toBe(pid)
      expect(cwdOf(pid)).toBe('/')
      await waitUntil('it has written', () => readFileSync(output, 'utf8').endsWith('\n/\n'))
      const lines = readFileSync(output, 'utf8').trimEnd().split('\n')
      expect(lines).toEqual(['out', 'err', 'three', '/usr/bin:/bin', '/'])
      if (identity !== null) killSession(identity)
    })

    test('descriptors nobody named are closed to it, so it never depends on us', async () => {
      const script = `ls -l /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2`
      await spawnDetached({
        argv: ['/bin/sh', '-c', `x=$(${script}); echo "$x" > ${output}`],
        env,
        stdio: [],
      })
      const lines = await waitUntil('it has written', () => {
        const written = exists(output) ? readFileSync(output, 'utf8').trimEnd().split('\n') : []
        return written.length === 3 && written
      })
      expect(lines.map((line) => line.split(' -> ')[1])).toEqual(Array(3).fill('/dev/null'))
    })

    test('a failed start is a fault', async () => {
      const start = spawnDetached({ argv: ['/absent'], env, stdio: ['ignore'] })
      await expect(start).rejects.toMatchObject({ code: 'sys/spawn-failed' })
    })
  })

  describe('its input', () => {
    test('arrives whole although the sender has long ended', async () => {
      const text = `${'x'.repeat(60_000)} and an end`
      const go = join(root, 'go')
      const script = `until [ -e ${go} ]; do sleep 0.02; done; cat <&3 > ${output}.part; mv ${output}.part ${output}`
      const late = ['/bin/sh', '-c', script]
      const sender = actors.start(['deliver', text, ...late])
      expect(await sender.ended()).toBe('delivered\n')
      expect(exists(output)).toBe(false)
      writeFileSync(go, '')
      await waitUntil('it has been read', () => exists(output))
      expect(readFileSync(output, 'utf8')).toBe(text)
    })

    test('larger ones wait for the reader', async () => {
      const text = 'y'.repeat(3 * 1024 ** 2)
      const argv = [
        '/bin/sh',
        '-c',
        `cat <&5 > ${output}.part; mv ${output}.part ${output}`,
      ] as const
      await spawnDetached({ argv, env, stdio: ['ignore'], input: { fd: 5, text } })
      await waitUntil('it has been read', () => exists(output))
      expect(readFileSync(output, 'utf8') === text).toBe(true)
    })

    test('a program that ends without reading is no fault; one that never reads is ended', async () => {
      const text = 'z'.repeat(3 * 1024 ** 2)
      const start = (argv: readonly [string, ...string[]]): ReturnType<typeof spawnDetached> =>
        spawnDetached({ argv, env, stdio: [], input: { fd: 3, text } })
      expect((await start(['/bin/true'])).pid).toBeGreaterThan(1)
      await expect(start(['/bin/sleep', '60'])).rejects.toMatchObject({
        code: 'sys/process-timeout',
        details: { seconds: 5 },
      })
    })
  })

  function exists(path: string): boolean {
    try {
      readFileSync(path)
      return true
    } catch {
      return false
    }
  }
})
