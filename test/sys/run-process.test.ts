import { createHash } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { childrenOf, listProcesses } from '../../daemon/sys/process-identity.ts'
import { findProgram, type ProcessRequest, runProcess } from '../../daemon/sys/run-process.ts'
import { commandLineOf } from '../support/process-sample.ts'
import { waitUntil } from '../support/wait-until.ts'

const env = { PATH: '/usr/bin:/bin' }

let root: string
let childrenBefore: number[]

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'run-process-'))
  childrenBefore = childrenOf(process.pid)
})

afterEach(async () => {
  rmSync(root, { recursive: true, force: true })
  await waitUntil('no child is left', () => childrenOf(process.pid).length <= childrenBefore.length)
})

const shell = (script: string, more: Partial<ProcessRequest> = {}): ReturnType<typeof runProcess> =>
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
