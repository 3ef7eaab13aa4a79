import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  commandLineOf,
  ownAncestry,
  processesHolding,
  processesOfSession,
  processesWithVariable,
  processesWorkingIn,
} from '../../daemon/sys/find-processes.ts'
import { cwdOf } from '../../daemon/sys/process-identity.ts'
import { bundleFixture, startActor, waitUntil } from '../support/processes.ts'
import { rogue } from '../support/supervisor-rig.ts'

let folder: string
let sleepers: ChildProcess[] = []

beforeEach(() => {
  folder = realpathSync.native(mkdtempSync(join(tmpdir(), 'find-processes-')))
})

afterEach(async () => {
  await Promise.all(sleepers.map(end))
  sleepers = []
  // Quicker than we are with so many folders.
  execFileSync('rm', ['-rf', folder])
})

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Resolves when the program that sleeps in the end runs, with its pid. */
async function start(
  argv: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = { PATH: process.env['PATH'] },
): Promise<number> {
  const [program, ...args] = argv
  const child = spawn(program, args, { detached: true, stdio: 'ignore', cwd: folder, env })
  sleepers.push(child)
  const pid = child.pid ?? 0
  await waitUntil('it sleeps', () => commandLineOf(pid).startsWith('sleep '))
  return pid
}

const pidsOf = (found: readonly { pid: number }[]): readonly number[] => found.map(({ pid }) => pid)

describe('a process is found by', () => {
  test('the folder it works in, or one above it, and no other', async () => {
    const pid = await start(['/bin/sh', '-c', 'mkdir below; cd below; exec sleep 60'])
    mkdirSync(join(folder, 'bel'))
    expect(pidsOf(processesWorkingIn(folder))).toEqual([pid])
    expect(pidsOf(processesWorkingIn(join(folder, 'below')))).toEqual([pid])
    expect(processesWorkingIn(join(folder, 'bel'))).toEqual([])
  })

  test('a folder that was removed under it', async () => {
    const pid = await start([
      '/bin/sh',
      '-c',
      'mkdir below; cd below; rmdir ../below; exec sleep 60',
    ])
    expect(pidsOf(processesWorkingIn(folder))).toEqual([pid])
  })

  test('a file it has open, a variable it was started with, its session', async () => {
    const note = join(folder, 'note')
    writeFileSync(note, '')
    const pid = await start(['/bin/sh', '-c', 'exec sleep 60 7<note'], { FOUND_BY: folder })
    expect(pidsOf(processesHolding(note))).toEqual([pid])
    expect(processesHolding(join(folder, 'absent'))).toEqual([])
    expect(pidsOf(processesWithVariable('FOUND_BY', folder))).toEqual([pid])
    expect(processesWithVariable('FOUND_BY', `${folder}/`)).toEqual([])
    expect(pidsOf(processesOfSession(pid))).toEqual([pid])
  })

  test('being above us', () => {
    expect([...ownAncestry()].slice(0, 2)).toEqual([process.pid, process.ppid])
  })
})

describe('a process in a folder too deep to be named', () => {
  test.each([
    ['just below what has a name', 25, 200],
    ['in folders with long names', 100, 250],
    ['in more folders than are climbed at once', 1100, 200],
  ])('%s: it is found by every folder above that has a name', async (_, levels, length) => {
    const pid = await start(rogue('works-too-deep', String(levels), String(length)))
    expect(() => readlinkSync(`/proc/${pid}/cwd`)).toThrow('ENAMETOOLONG')
    const named = cwdOf(pid) ?? ''
    // One level more could not be named.
    expect(named.length).toBeGreaterThan(4096 - 2 - length)
    const below = named.slice(folder.length).split('/').slice(1)
    expect(new Set(below)).toEqual(new Set(['d'.repeat(length)]))
    expect(named.startsWith(`${folder}/`)).toBe(true)
    const level = join(folder, 'd'.repeat(length))
    expect(pidsOf(processesWorkingIn(folder))).toEqual([pid])
    expect(pidsOf(processesWorkingIn(level))).toEqual([pid])
    expect(processesWorkingIn(join(folder, 'e'))).toEqual([])
  })

  test('hinders no search for others', async () => {
    const deep = await start(rogue('works-too-deep', '30', '200'))
    const other = await start(['/bin/sh', '-c', 'exec sleep 60'])
    expect(new Set(pidsOf(processesWorkingIn(folder)))).toEqual(new Set([deep, other]))
  })
})

test('what we are short of is a fault, never the answer that there is no process', async () => {
  const program = bundleFixture('sys-actor')
  try {
    const said = await startActor(program.path, ['search-without-descriptors', folder]).ended()
    const shortage: unknown = expect.stringContaining('EMFILE')
    expect(JSON.parse(said)).toEqual(Array.from({ length: 4 }, () => shortage))
  } finally {
    program.remove()
  }
})
